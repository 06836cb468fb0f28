// Storage: how large everything is, what optimize and cleanup would gain, what was recovered, and what one may do.
import { useState } from "preact/hooks";
import { ask } from "../api";
import { changed, may, permissions, useData } from "../data";
import { ago, bytes, number, plural } from "../format";
import { Badge, Button, Card, Empty, Field, Problem, say, Shown, TypeName, useAction } from "../parts/ui";
import { base, branch } from "../route";

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
              <table class="list">
                <thead><tr><th>Type</th><th class="number">Rows</th><th class="number">Data</th><th class="number">On disk</th><th class="number">Versions</th><th class="number">Fragments</th><th>Indexes</th></tr></thead>
                <tbody>
                  {told.tables.map((table: any) => {
                    const [kind, name] = table.type_key.split(":");
                    const wanting = table.pending_indexes.length + table.stale_indexes.length;
                    return (
                      <tr key={table.type_key}>
                        <td>{kind === "node" ? <TypeName name={name} /> : name}</td>
                        <td class="number">{number(table.rows)}</td>
                        <td class="number">{bytes(table.bytes)}</td>
                        <td class="number">{bytes(table.stored_bytes)}</td>
                        <td class="number">{number(table.versions)}</td>
                        <td class="number">{number(table.fragments)}{table.fragments_to_compact ? ` (${table.fragments_to_compact} to compact)` : ""}</td>
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
      <div class="columns">
        <Optimize on={on} />
        <Cleanup />
        <Card title="Recoveries">
          <Shown of={recovered}>
            {(told) =>
              told.recoveries.length ? (
                <ul class="plain-list">{told.recoveries.slice(-8).reverse().map((each: any) => <li><span>{each.recovery_kind === "RolledForward" ? "finished" : "undone"}: {each.writer_kind} on {each.branch}</span><span class="dim">{ago(each.created_at)}</span></li>)}</ul>
              ) : (
                <Empty title="No writer has died">{told.waiting ? plural(told.waiting, "operation waits", "operations wait") : "Nothing had to be recovered."}</Empty>
              )
            }
          </Shown>
        </Card>
        <Card title="What you may do">
          {permissions.value ? (
            <ul class="plain-list">
              {Object.entries(permissions.value.may).map(([action, allowed]) => <li><span>{action.replaceAll("_", " ")}</span>{allowed ? <Badge kind="good">yes</Badge> : <Badge>no</Badge>}</li>)}
            </ul>
          ) : null}
          <p class="dim">As {permissions.value?.actor_id ?? "anybody"}, on {permissions.value?.branch}.</p>
        </Card>
      </div>
    </>
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
