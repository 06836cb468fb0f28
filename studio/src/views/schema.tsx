// The schema: its source and picture; edit it, see what would happen to the data, apply it.
import { useState } from "preact/hooks";
import { ApiError, ask } from "../api";
import { changed, may, useData } from "../data";
import { plural } from "../format";
import { Editor } from "../parts/lazy";
import { SchemaPicture } from "../parts/schemapicture";
import { Button, Card, Empty, Problem, say, Shown, useAction } from "../parts/ui";
import { StepList, type Planned } from "../parts/steps";
import { at, base, branch, target } from "../route";

export default function Schema() {
  const source = useData((signal) => ask<{ schema_source: string }>("GET", `${base.value}/schema`, { query: target.value, signal }), [base.value, JSON.stringify(target.value)]);
  const tables = useData((signal) => ask<any>("GET", `${base.value}/snapshot`, { query: target.value, signal }), [base.value, JSON.stringify(target.value)]);
  const counts = Object.fromEntries((tables.data?.datasets ?? []).map((each: any) => [each.type_name, each.entity_count]));
  return (
    <>
      <h1>Schema</h1>
      <Card title="Picture"><SchemaPicture counts={counts} /></Card>
      <Shown of={source}>{(told) => <Edit key={told.schema_source} source={told.schema_source} />}</Shown>
    </>
  );
}

function Edit({ source }: { source: string }) {
  const [text, setText] = useState(source);
  const [turn, setTurn] = useState(0);
  const [loss, setLoss] = useState(false);
  const [planned, setPlanned] = useState<Planned | null>(null);
  const isChanged = text !== source;
  const name = branch.value ?? "main";
  const on = name === "main" ? "" : `?branch=${encodeURIComponent(name)}`;
  const [plan, isPlanning, planError] = useAction(async (allow: boolean) => {
    setPlanned(null);
    setPlanned(await ask<Planned>("POST", `${base.value}/schema/plan${on}`, { body: { schema_source: text, allow_data_loss: allow } }));
  });
  const [apply, isApplying, applyError] = useAction(async () => {
    await ask("POST", `${base.value}/schema/apply${on}`, { body: { schema_source: text, allow_data_loss: loss } });
    say(`The schema of ${name} is applied`);
    setPlanned(null);
    changed.value += 1;
  });
  const check = async (given: string) => {
    if (given === source) return [];
    try {
      await ask("POST", `${base.value}/schema/plan${on}`, { body: { schema_source: given } });
    } catch (problem) {
      const told = (problem as ApiError).body?.library ?? {};
      if (typeof told.start === "number") {
        const from = Math.min(told.start, given.length);
        return [{ from: Math.min(from, given.length), to: Math.min(Math.max(told.end ?? from + 1, from), given.length), severity: "error" as const, message: (problem as Error).message }];
      }
    }
    return [];
  };
  const canApply = may("schema_apply") && branch.value !== null;
  return (
    <Card title={`Source on ${at.value ? "this commit" : name}`} actions={isChanged ? <Button kind="quiet" onClick={() => { setText(source); setTurn(turn + 1); setPlanned(null); }}>Undo all</Button> : undefined}>
      <Editor text={text} turn={turn} kind="pg" label="Schema" change={(given: string) => { setText(given); setPlanned(null); }} check={check} readOnly={!canApply} />
      {canApply && (
        <div class="actions wrap">
          <Button kind={planned ? "plain" : "main"} busy={isPlanning} disabled={!isChanged} onClick={() => void plan(loss)}>See what would happen</Button>
          <label class="check"><input type="checkbox" checked={loss} onChange={(event) => { setLoss(event.currentTarget.checked); if (planned) void plan(event.currentTarget.checked); }} /> allow steps that lose data for good</label>
        </div>
      )}
      {planError && <div class="wrap"><Problem error={planError} /></div>}
      {planned && (
        <div class="wrap">
          {!planned.step_count ? (
            <Empty title="Nothing would change">The texts differ, the schemas do not.</Empty>
          ) : (
            <>
              <p><b>{plural(planned.step_count, "step")}</b>{planned.supported ? "" : "; some of them can not be done"}</p>
              <StepList steps={planned.steps} />
              {applyError && <Problem error={applyError} />}
              <Button class="below" kind="main" busy={isApplying} disabled={!planned.supported} onClick={() => void apply()}>Apply the schema to {name}</Button>
            </>
          )}
        </div>
      )}
    </Card>
  );
}
