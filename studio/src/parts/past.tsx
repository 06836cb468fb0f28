// Look at the graph as it was: a time is chosen, and the commit that was the newest then is looked at.
import { useState } from "preact/hooks";
import { ask, type ApiError } from "../api";
import { base, branch, go } from "../route";
import { Button, Dialog, Field, Problem, useAction } from "./ui";

const STEPS = [["1 hour ago", 1], ["Yesterday", 24], ["A week ago", 24 * 7], ["A month ago", 24 * 30]] as const;

/** A moment as a field of the browser takes it, in the time of this machine. */
function local(when: Date): string {
  return new Date(when.getTime() - when.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

export function TimeDialog({ close }: { close: () => void }) {
  const on = branch.value ?? "main";
  const before = (hours: number) => local(new Date(Date.now() - hours * 3_600_000));
  const [when, setWhen] = useState(before(24));
  const [look, busy, error] = useAction(async () => {
    const told = await ask<{ library: { commit: string } }>("GET", `${base.value}/snapshot`, { query: { snapshot: `${on}@{${new Date(when).toISOString()}}` } }).catch((problem: ApiError) => {
      throw problem.status === 404 ? new Error(`${on} has no commit that is so old. The list of commits shows how far back it goes.`) : problem;
    });
    close();
    go("overview", { at: told.library.commit, branch: null });
  });
  return (
    <Dialog title={`Look at ${on} at an earlier time`} close={close}>
      <form onSubmit={(event) => { event.preventDefault(); void look(); }}>
        <div class="actions wrap-plain" role="group" aria-label="How long ago">
          {STEPS.map(([title, hours]) => <Button aria-pressed={when === before(hours)} onClick={() => setWhen(before(hours))}>{title}</Button>)}
        </div>
        <Field label="Day and time" hint="You see the graph as it was then, and can come back at any moment. Nothing is changed.">
          <input type="datetime-local" value={when} step="1" onInput={(event) => setWhen(event.currentTarget.value)} required />
        </Field>
        {error && <Problem error={error} />}
        <div class="form-end"><Button kind="quiet" onClick={close}>Cancel</Button><Button kind="main" type="submit" busy={busy} disabled={!when}>Look at it</Button></div>
      </form>
    </Dialog>
  );
}
