// Two states compared: counts of each type first, then the entities of the chosen types in pages.
import { useEffect, useState } from "preact/hooks";
import { ask, type Change, type Compared } from "../api";
import { branches, may, tags, useData } from "../data";
import { brief, number, plural } from "../format";
import { ChangeList } from "../parts/changes";
import { StepList } from "../parts/steps";
import { Badge, Button, Card, Empty, Field, Link, Problem, Shown, TypeName, useAction } from "../parts/ui";
import { address, adjust, base, branch, route, visit } from "../route";

const PAGE = 50;
const OPS = [["insert", "new"], ["update", "changed"], ["delete", "gone"]] as const;

export function TargetField({ label, value, pick }: { label: string; value: string; pick: (value: string) => void }) {
  const known = [...branches.value.map((each) => each.name), ...Object.keys(tags.value)];
  return (
    <Field label={label}>
      <select value={value} onChange={(event) => pick(event.currentTarget.value)}>
        <optgroup label="Branches">{branches.value.map((each) => <option>{each.name}</option>)}</optgroup>
        {Object.keys(tags.value).length > 0 && <optgroup label="Tags">{Object.keys(tags.value).map((name) => <option>{name}</option>)}</optgroup>}
        {!known.includes(value) && <optgroup label="Commit"><option value={value}>{shownAs(value)}</option></optgroup>}
      </select>
    </Field>
  );
}

export function Counts({ counts, chosen, pick }: { counts: NonNullable<Compared["counts"]>; chosen?: string | null; pick?: (type: string | null) => void }) {
  return (
    <div class="scroll-x" tabIndex={0} role="group" aria-label="Changes of each type">
      <table class="list counts">
        <thead><tr><th>Type</th><th class="number">New</th><th class="number">Changed</th><th class="number">Gone</th></tr></thead>
        <tbody>
          {counts.map((each) => {
            const name = `${each.kind}:${each.type}`;
            const title = each.kind === "node" ? <TypeName name={each.type} /> : each.type;
            return (
              <tr key={name} class={chosen === name ? "chosen" : ""}>
                <td>{pick ? <button type="button" class="inline-button" aria-pressed={chosen === name} onClick={() => pick(chosen === name ? null : name)}>{title}</button> : title}</td>
                <td class="number">{each.inserts ? <Badge kind="insert">{number(each.inserts)}</Badge> : "–"}</td>
                <td class="number">{each.updates ? <Badge kind="update">{number(each.updates)}</Badge> : "–"}</td>
                <td class="number">{each.deletes ? <Badge kind="delete">{number(each.deletes)}</Badge> : "–"}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

export default function Compare() {
  const params = route.value.params;
  const other = branches.value.find((each) => each.name !== "main")?.name ?? "main";
  const before = params.get("before") ?? "main";
  const after = params.get("after") ?? (branch.value && branch.value !== "main" ? branch.value : other);
  const ops = (params.get("ops") ?? "").split(",").filter((each) => OPS.some(([op]) => op === each));
  const counted = useData(
    (signal) => ask<Compared>("POST", `${base.value}/compare`, { body: { before, after, limit: 0 }, signal }),
    [base.value, before, after],
  );
  return (
    <>
      <h1>Compare</h1>
      <Card>
        <div class="row-fields">
          <TargetField label="Before" value={before} pick={(value) => visit({ before: value, after, only: null })} />
          <Button kind="quiet" aria-label="Swap the two states" onClick={() => visit({ before: after, after: before, only: null })}>⇄ Swap</Button>
          <TargetField label="After" value={after} pick={(value) => visit({ before, after: value, only: null })} />
          <span class="grow" />
          {may("branch_merge") && before !== after && branches.value.some((each) => each.name === after) && branches.value.some((each) => each.name === before) && (
            <Link class="button main" to={address("merge", { source: after, target: before })}>Merge {after} into {before}</Link>
          )}
        </div>
      </Card>
      {before === after ? <Card><Empty title="Choose two different states">{branches.value.length < 2 ? <>There is only main. <Link to={address("branches")}>Make a branch</Link>, or compare with a commit from the <Link to={address("history")}>history</Link>.</> : null}</Empty></Card> : <Shown of={counted}>
        {(told) => {
          const counts = told.counts ?? [];
          const schema = told.schema?.length ? <Card title="The schemas differ"><StepList steps={told.schema} /></Card> : null;
          if (!counts.length) return <>{schema}<Card><Empty title="No entity differs">{shownAs(before)} and {shownAs(after)} hold the same nodes and edges.</Empty></Card></>;
          // An address can be typed: a type that does not differ filters nothing.
          const type = counts.map((each) => `${each.kind}:${each.type}`).find((name) => name === params.get("only")) ?? null;
          const all = counts.reduce((sum, each) => sum + each.inserts + each.updates + each.deletes, 0);
          return (
            <>
              {schema}
              <Card title={`${plural(all, "entity differs", "entities differ")}`}>
                <Counts counts={counts} chosen={type} pick={(name) => visit({ only: name, before, after })} />
              </Card>
              <Card
                title={type ? `Changes of ${type.split(":")[1]}` : "All changes"}
                actions={
                  <span class="actions" role="group" aria-label="Which changes">
                    {OPS.map(([op, word]) => (
                      <label class="check"><input type="checkbox" checked={!ops.length || ops.includes(op)} onChange={() => {
                        const now = ops.length ? ops : OPS.map(([name]) => name as string);
                        const next = now.includes(op) ? now.filter((name) => name !== op) : [...now, op];
                        adjust({ ops: next.length === 0 || next.length === 3 ? null : next.join(","), before, after });
                      }} /> {word}</label>
                    ))}
                  </span>
                }
              >
                <Pages before={told.before} after={told.after} type={type} ops={ops} />
              </Card>
            </>
          );
        }}
      </Shown>}
    </>
  );
}

/** A branch or tag by its name, a commit in short. */
function shownAs(state: string): string {
  return /^[0-9A-Z]{26}$/.test(state) ? `commit ${brief(state)}` : state;
}

function Pages({ before, after, type, ops }: { before: string; after: string; type: string | null; ops: string[] }) {
  const asked = { before, after, limit: PAGE, ...(type ? { kinds: [type.split(":")[0]], types: [type.split(":")[1]] } : {}), ...(ops.length ? { ops } : {}) };
  const key = JSON.stringify(asked);
  const first = useData((signal) => ask<Compared>("POST", `${base.value}/compare`, { body: asked, signal }), [key]);
  const [later, setLater] = useState<Change[]>([]);
  const [token, setToken] = useState<string | null | undefined>(undefined);
  useEffect(() => {
    setLater([]);
    setToken(undefined);
  }, [key]);
  const next = token === undefined ? first.data?.next_page_token : token;
  const [more, busy, error] = useAction(async () => {
    const told = await ask<Compared>("POST", `${base.value}/compare`, { body: { ...asked, page_token: next } });
    setLater([...later, ...told.changes]);
    setToken(told.next_page_token ?? null);
  });
  return (
    <Shown of={first}>
      {(page) => {
        const list = [...page.changes, ...later];
        if (!list.length) return <Empty title="No change fits these filters" />;
        return (
          <>
            <ChangeList changes={list} />
            {error && <Problem error={error} />}
            {next && <div class="wrap"><Button busy={busy} onClick={() => void more()}>{PAGE} more</Button></div>}
          </>
        );
      }}
    </Shown>
  );
}
