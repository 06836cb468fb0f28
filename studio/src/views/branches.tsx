// All branches: where they stand to main; new ones, old ones gone.
import { useState } from "preact/hooks";
import { ask, type BranchStanding } from "../api";
import { branches, changed, may } from "../data";
import { ago, moment, short, titleOf } from "../format";
import { Button, Card, Dialog, Empty, Field, Link, Problem, say, useAction } from "../parts/ui";
import { address, base, branch, go } from "../route";

export function Standing({ each }: { each: BranchStanding }) {
  if (each.name === "main") return <span class="dim" title="The others are compared with main">–</span>;
  return (
    <span class="standing">
      <span class={each.ahead ? "ahead" : "dim"} title="Commits that main lacks">{each.ahead} ahead</span>
      <span class={each.behind ? "behind" : "dim"} title="Commits of main that it lacks">{each.behind} behind</span>
    </span>
  );
}

export function BranchRow({ each }: { each: BranchStanding }) {
  return (
    <li>
      <Link to={address("overview", { branch: each.name === "main" ? null : each.name, at: null })}>{each.name}</Link>
      {each.name !== "main" && <Standing each={each} />}
    </li>
  );
}

function NewBranch({ close }: { close: () => void }) {
  const [name, setName] = useState("");
  const [from, setFrom] = useState(branch.value ?? "main");
  const [run, busy, error] = useAction(async () => {
    await ask("POST", `${base.value}/branches`, { body: { name: name.trim(), from } });
    changed.value += 1;
    say(`Branch ${name.trim()} was made`);
    close();
    go("overview", { branch: name.trim() });
  });
  return (
    <Dialog title="New branch" close={close}>
      <form class="form" onSubmit={(event) => { event.preventDefault(); void run(); }}>
        <Field label="Name" hint="For example agent/1 or fix-authors">
          <input value={name} onInput={(event) => setName(event.currentTarget.value)} autofocus required />
        </Field>
        <Field label="Starts from">
          <select value={from} onChange={(event) => setFrom(event.currentTarget.value)}>
            {branches.value.map((each) => <option>{each.name}</option>)}
          </select>
        </Field>
        {error && <Problem error={error} />}
        <div class="form-end">
          <Button kind="quiet" onClick={close}>Cancel</Button>
          <Button kind="main" type="submit" busy={busy} disabled={!name.trim()}>Make the branch</Button>
        </div>
      </form>
    </Dialog>
  );
}

function DeleteBranch({ each, close }: { each: BranchStanding; close: () => void }) {
  const [run, busy, error] = useAction(async () => {
    await ask("DELETE", `${base.value}/branches/${encodeURIComponent(each.name)}`);
    say(`Branch ${each.name} is deleted`);
    close();
    if (branch.value === each.name) go("branches", { branch: null });
    changed.value += 1;
  });
  return (
    <Dialog title={`Delete ${each.name}?`} close={close}>
      <p>
        {each.ahead
          ? `It has ${each.ahead} commit${each.ahead === 1 ? "" : "s"} that main lacks; they are lost with it.`
          : "Everything on it is in main."}
      </p>
      {error && <Problem error={error} />}
      <div class="form-end">
        <Button kind="quiet" onClick={close}>Keep it</Button>
        <Button kind="danger" busy={busy} onClick={() => void run()}>Delete the branch</Button>
      </div>
    </Dialog>
  );
}

export default function Branches() {
  const [isNew, setNew] = useState(false);
  const [going, setGoing] = useState<BranchStanding | null>(null);
  const all = branches.value;
  return (
    <>
      <header class="view-head">
        <h1>Branches</h1>
        {may("branch_create") && <Button kind="main" onClick={() => setNew(true)}>New branch</Button>}
      </header>
      <Card>
        <div class="scroll-x" tabIndex={0} role="group" aria-label="All branches">
          <table class="list branch-table">
            <thead>
              <tr><th>Branch</th><th>Against main</th><th>Newest commit</th><th>By</th><th>When</th><th><span class="visually-hidden">What can be done</span></th></tr>
            </thead>
            <tbody>
              {all.map((each) => (
                <tr key={each.name}>
                  <td><Link to={address("overview", { branch: each.name === "main" ? null : each.name, at: null })}>{each.name}</Link></td>
                  <td><Standing each={each} /></td>
                  <td><Link to={address("history", { branch: each.name, commit: each.head.id })} title={each.head.id}>{short(titleOf(each.head), 90)}</Link></td>
                  <td class="by" title={each.head.actor ?? undefined}>{each.head.actor ?? <span class="dim">–</span>}</td>
                  <td class="when"><time title={moment(each.head.created_at)}>{ago(each.head.created_at)}</time></td>
                  <td class="row-actions">
                    {each.name !== "main" && (
                      <>
                        <Link class="button quiet" to={address("compare", { branch: each.name, before: "main", after: each.name })} aria-label={`Compare ${each.name} with main`}>Compare</Link>
                        {may("branch_merge") && <Link class="button quiet" to={address("merge", { branch: each.name, source: each.name, target: "main" })} aria-label={`Merge ${each.name}`}>Merge</Link>}
                        {may("branch_delete") && <Button kind="quiet" aria-label={`Delete ${each.name}`} onClick={() => setGoing(each)}>Delete</Button>}
                      </>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
        {all.length === 1 && <Empty title="There is only main">A branch is a cheap copy that nobody else sees, until it is merged.</Empty>}
      </Card>
      {isNew && <NewBranch close={() => setNew(false)} />}
      {going && <DeleteBranch each={going} close={() => setGoing(null)} />}
    </>
  );
}
