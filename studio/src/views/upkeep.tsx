// Storage: how large everything is, what optimize and cleanup would gain, what was recovered, and what one may do.
import { useState } from "preact/hooks";
import { ask, type Permissions } from "../api";
import { changed, may, permissions, useData } from "../data";
import { ago, bytes, number, plural } from "../format";
import { Badge, Button, Card, Empty, Field, Problem, say, Shown, TypeName, useAction } from "../parts/ui";
import { base, branch } from "../route";

/** How many indexes of a table are still to be built; one of an empty table is not. */
export function wantingIndexes(table: { rows: number; pending_indexes: unknown[]; stale_indexes: unknown[] }): number {
  return table.rows ? table.pending_indexes.length + table.stale_indexes.length : 0;
}

const ACTIONS: Record<string, string> = {
  read: "Read",
  export: "Export",
  change: "Change data",
  change_new_branch: "Change data on a new branch",
  invoke_query: "Run stored queries",
  branch_create: "Make branches",
  branch_delete: "Delete this branch",
  branch_merge: "Merge into main",
  schema_apply: "Change the schema of main",
  admin: "Tend the storage",
};

export default function Upkeep() {
  const on = branch.value ?? "main";
  const stats = useData((signal) => ask<any>("GET", `${base.value}/stats`, { query: { branch: on }, signal }), [base.value, on]);
  const recovered = useData((signal) => ask<any>("GET", `${base.value}/recoveries`, { signal }), [base.value]);
  return (
    <>
      <h1>Upkeep</h1>
      <Card title={`Tables of ${on}`}>
        <Shown of={stats}>
          {(told) => (
            <div class="scroll-x" tabIndex={0} role="group" aria-label="Tables">
              <table class="list one-line">
                <thead><tr><th>Type</th><th class="number">Rows</th><th class="number">Data</th><th class="number">On disk</th><th class="number">Versions</th><th class="number">Fragments</th><th>Indexes</th></tr></thead>
                <tbody>
                  {told.tables.map((table: any) => {
                    const [kind, name] = table.type_key.split(":");
                    const wanting = wantingIndexes(table);
                    return (
                      <tr key={table.type_key}>
                        <td>{kind === "node" ? <TypeName name={name} /> : name}</td>
                        <td class="number">{number(table.rows)}</td>
                        <td class="number">{bytes(table.bytes)}</td>
                        <td class="number">{bytes(table.stored_bytes)}</td>
                        <td class="number">{number(table.versions)}</td>
                        <td class="number">{table.fragments_to_compact ? <Badge kind="warn">{number(table.fragments_to_compact)} to compact</Badge> : ""} {number(table.fragments)}</td>
                        <td>{table.indexes.length ? <span>{table.indexes.length} </span> : ""}{wanting ? <Badge kind="warn">{wanting} to build</Badge> : <Badge kind="good">complete</Badge>}</td>
                      </tr>
                    );
                  })}
                </tbody>
              </table>
            </div>
          )}
        </Shown>
      </Card>
      <div class="columns wide-columns">
        <div>
        <Optimize on={on} />
        <Cleanup />
        <Card title="Recoveries">
          <Shown of={recovered}>
            {(told) =>
              told.recoveries.length ? (
                <ul class="plain-list">{told.recoveries.slice(-8).reverse().map((each: any) => <li><span>{each.recovery_kind === "RolledForward" ? "finished" : "undone"}: {each.writer_kind} on {each.branch}</span><span class="dim">{ago(each.created_at)}</span></li>)}</ul>
              ) : (
                <Empty title="Nothing to recover">{told.waiting ? plural(told.waiting, "operation waits", "operations wait") : "No writer has died halfway."}</Empty>
              )
            }
          </Shown>
        </Card>
        </div>
        <Rights on={on} />
      </div>
    </>
  );
}

/** Who may do what, and which rule forbids it: oneself, or another actor for who tends the graph. */
function Rights({ on }: { on: string }) {
  const own = permissions.value?.actor_id ?? null;
  const [given, setGiven] = useState("");
  const [actor, setActor] = useState<string | null>(null);
  const found = useData((signal) => ask<Permissions>("GET", `${base.value}/permissions`, { query: { branch: on, actor }, signal }), [base.value, on, actor]);
  return (
    <Card title="Who may do what">
      {may("admin") && (
        <form class="row-fields" onSubmit={(event) => { event.preventDefault(); setActor(given.trim() || null); }}>
          <label class="grow"><span class="visually-hidden">Actor</span><input class="wide" placeholder={own ?? "an actor"} value={given} onInput={(event) => setGiven(event.currentTarget.value)} /></label>
          <Button type="submit">Ask</Button>
        </form>
      )}
      <Shown of={found}>
        {(told) => (
          <>
            <p class="dim rights-of">{told.actor_id ? <><b><bdi>{told.actor_id}</bdi></b>{told.actor_id === own ? " (you)" : ""}</> : "Anybody"} on {told.branch}</p>
            <ul class="plain-list">
              {Object.keys(ACTIONS).filter((action) => action in told.may).map((action) => (
                <li key={action}>
                  <span>{ACTIONS[action]}{told.why_not[action] && <span class="dim reason">{told.why_not[action]}</span>}</span>
                  {told.may[action] ? <Badge kind="good">yes</Badge> : <Badge>no</Badge>}
                </li>
              ))}
            </ul>
          </>
        )}
      </Shown>
    </Card>
  );
}

function Optimize({ on }: { on: string }) {
  const [plan, setPlan] = useState<any>(null);
  const [look, isLooking, lookError] = useAction(async () => setPlan((await ask<any>("POST", `${base.value}/optimize`, { body: { branch: on, dry_run: true } })).report));
  const [run, busy, error] = useAction(async () => {
    await ask<any>("POST", `${base.value}/optimize`, { body: { branch: on } });
    say("The tables are optimized");
    setPlan(null);
    changed.value += 1;
  });
  const work = (plan?.datasets ?? []).filter((each: any) => each.fragments_removed || each.built_indexes.length || each.folded_indexes.length);
  return (
    <Card title="Optimize">
      <p>Puts small files together and completes indexes, in one commit. No answer changes.</p>
      {!may("admin") ? (
        <p class="dim">Your token may not do this.</p>
      ) : (
        <>
          {plan && (work.length ? (
            <ul class="plain-list">{work.map((each: any) => <li><span>{each.type_key.split(":")[1]}</span><span class="dim">{[each.fragments_removed && `${each.fragments_removed} fragments → ${each.fragments_added}`, each.built_indexes.length && plural(each.built_indexes.length, "index", "indexes")].filter(Boolean).join(", ")}</span></li>)}</ul>
          ) : <p><Badge kind="good">nothing to do</Badge></p>)}
          {(lookError || error) && <Problem error={(lookError ?? error)!} />}
          <div class="actions wrap"><Button busy={isLooking} onClick={() => void look()}>What would it gain?</Button>{work.length > 0 && <Button kind="main" busy={busy} onClick={() => void run()}>Optimize now</Button>}</div>
        </>
      )}
    </Card>
  );
}

function Cleanup() {
  const [keep, setKeep] = useState("10");
  const [plan, setPlan] = useState<any>(null);
  const body = (dry: boolean) => ({ keep: Number(keep) || 10, dry_run: dry });
  const [look, isLooking, lookError] = useAction(async () => setPlan((await ask<any>("POST", `${base.value}/cleanup`, { body: body(true) })).report));
  const [run, busy, error] = useAction(async () => {
    await ask<any>("POST", `${base.value}/cleanup`, { body: body(false) });
    say("Old versions are removed");
    setPlan(null);
    changed.value += 1;
  });
  const gain = (plan?.datasets ?? []).reduce((sum: number, each: any) => sum + (each.bytes_removed ?? 0), 0);
  return (
    <Card title="Cleanup">
      <p>Removes old versions that no branch, tag or feed needs. What is removed can not be looked at any more.</p>
      {!may("admin") ? (
        <p class="dim">Your token may not do this.</p>
      ) : (
        <>
          <Field label="Commits that stay on each branch"><input type="number" min="1" value={keep} onInput={(event) => { setKeep(event.currentTarget.value); setPlan(null); }} /></Field>
          {plan && <p>{gain ? <>{bytes(gain)} in {plural(plan.datasets.length, "table")} would go.</> : <Badge kind="good">nothing can go</Badge>} {plan.kept?.length ? <span class="dim">Kept for: {[...new Set(plan.kept.map((each: any) => each.reason.replaceAll("_", " ")))].join(", ")}.</span> : null}</p>}
          {(lookError || error) && <Problem error={(lookError ?? error)!} />}
          <div class="actions wrap"><Button busy={isLooking} onClick={() => void look()}>What would go?</Button>{gain > 0 && <Button kind="danger" busy={busy} onClick={() => void run()}>Remove it</Button>}</div>
        </>
      )}
    </Card>
  );
}
