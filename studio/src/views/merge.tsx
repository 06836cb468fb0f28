// Merge a branch: a dry run first, each conflict with base, ours and theirs, then the merge with exactly these decisions.
import { useEffect, useState } from "preact/hooks";
import { ApiError, ask, newKey, type BranchStanding, type Conflict, type MergeAnswer } from "../api";
import { branches, changed, may, news, useData } from "../data";
import { ago, brief, plural, text, titleOf } from "../format";
import { integer, parse, stringify } from "../json";
import { Editor } from "../parts/lazy";
import { StepList, type Step } from "../parts/steps";
import { Badge, Button, Card, Empty, Field, Link, Problem, say, Shown, TypeName, useAction, Value } from "../parts/ui";
import { address, base, branch, route, visit } from "../route";
import { Counts } from "./compare";
import { PickDialog } from "./history";

type Side = "ours" | "theirs";
/** What was decided about one conflict: a side for the whole entity, or for each property a side or a value of one's own. */
interface Decided {
  whole?: Side;
  each?: Record<string, Side | { value: string }>;
}
type Decisions = Record<string, Decided>;

const keyOf = (conflict: Conflict) => `${conflict.type_key}\u0000${conflict.entity_id}`;
const WORDS: Record<string, string> = {
  DivergentInsert: "added on both sides, differently",
  DivergentUpdate: "changed on both sides",
  DeleteVsUpdate: "deleted on one side, changed on the other",
  OrphanEdge: "an edge would lose its node",
  UniqueViolation: "two entities would share a unique value",
  CardinalityViolation: "too many or too few edges",
  ValueConstraintViolation: "a value breaks a rule of the schema",
  SchemaConflict: "declared differently on both sides",
};
const SCHEMA = "SchemaConflict";

function differing(conflict: Conflict): string[] {
  const names = new Set([...Object.keys(conflict.ours ?? {}), ...Object.keys(conflict.theirs ?? {})]);
  return [...names].filter((name) => name !== "id" && text(conflict.ours?.[name]) !== text(conflict.theirs?.[name]));
}

/** The side that alone has changed a property; it is taken unless somebody chooses otherwise. */
function implied(conflict: Conflict, name: string): Side | undefined {
  if (!conflict.base || !conflict.ours || !conflict.theirs) return undefined;
  const base = text(conflict.base[name]);
  return base === text(conflict.ours[name]) ? "theirs" : base === text(conflict.theirs[name]) ? "ours" : undefined;
}

function isDecided(conflict: Conflict, decided: Decided | undefined): boolean {
  if (!conflict.entity_id) return false;
  if (decided?.whole) return true;
  const names = differing(conflict);
  return names.length > 0 && names.every((name) => decided?.each?.[name] !== undefined || implied(conflict, name) !== undefined) && Object.keys(decided?.each ?? {}).length > 0;
}

/** A value that somebody typed, as the kind of value that stands on either side. */
function typed(given: string, beside: unknown): unknown {
  if (given === "null") return null;
  if (typeof beside === "string") return given;
  if (typeof beside === "number" || typeof beside === "bigint") return integer(given) ?? (given.trim() && Number.isFinite(Number(given)) ? Number(given) : given);
  try {
    return parse(given);
  } catch {
    return given;
  }
}

function resolution(conflict: Conflict, decided: Decided): Record<string, unknown> {
  const about = { type_key: conflict.type_key, id: conflict.entity_id };
  if (decided.whole) return { ...about, take: decided.whole };
  const value: Record<string, unknown> = {};
  for (const name of differing(conflict)) {
    const choice = decided.each?.[name] ?? implied(conflict, name) ?? "ours";
    if (choice === "theirs") value[name] = conflict.theirs?.[name] ?? null;
    else if (choice !== "ours") value[name] = typed(choice.value, conflict.ours?.[name] ?? conflict.theirs?.[name]);
  }
  return Object.keys(value).length ? { ...about, take: "value", value } : { ...about, take: "ours" };
}

export default function Merge() {
  const params = route.value.params;
  const source = params.get("source") ?? (branch.value && branch.value !== "main" ? branch.value : branches.value.find((each) => each.name !== "main" && each.ahead)?.name ?? "");
  const into = params.get("target") ?? "main";
  const names = branches.value.map((each) => each.name);
  return (
    <>
      <h1>Merge</h1>
      <Card>
        <div class="row-fields">
          <Field label="Merge">
            <select value={source} onChange={(event) => visit({ source: event.currentTarget.value, target: into })}>
              {!names.includes(source) && <option value={source}>{source || "choose a branch"}</option>}
              {names.filter((name) => name !== into).map((name) => <option>{name}</option>)}
            </select>
          </Field>
          <Field label="Into">
            <select value={into} onChange={(event) => visit({ source, target: event.currentTarget.value })}>{names.map((name) => <option>{name}</option>)}</select>
          </Field>
        </div>
      </Card>
      {names.length < 2 ? (
        <Card><Empty title="There is nothing to merge"><Link to={address("branches")}>Make a branch first</Link></Empty></Card>
      ) : source && source !== into ? (
        <Plan key={`${source} ${into}`} source={source} into={into} />
      ) : (
        <Card><Empty title="Choose two different branches" /></Card>
      )}
    </>
  );
}

const KEPT = (source: string, into: string) => `omnigraph.decisions.${route.value.graph}.${source}.${into}`;

function Plan({ source, into }: { source: string; into: string }) {
  const [decisions, setDecisions] = useState<Decisions>(() => parse(sessionStorage.getItem(KEPT(source, into)) ?? "{}") as Decisions);
  const [stale, setStale] = useState<string | null>(null);
  const [done, setDone] = useState<MergeAnswer | null>(null);
  const [isPropertyLevel, setPropertyLevel] = useState(true);
  const [isDeleting, setDeleting] = useState(false);
  const [message, setMessage] = useState(`Merge ${source} into ${into}`);
  /** The schema that the merge is to lead to, where both sides have declared something differently. */
  const [schema, setSchema] = useState<string | undefined>(undefined);
  useEffect(() => {
    try {
      sessionStorage.setItem(KEPT(source, into), stringify(decisions));
    } catch {
      // A full store keeps nothing over a reload; the decisions of this page are there all the same.
    }
  }, [decisions]);
  const dry = useData(
    async (signal) => {
      const standing = await ask<{ branches: BranchStanding[] }>("GET", `${base.value}/branches/status`, { signal });
      const told = await ask<{ library: MergeAnswer }>("POST", `${base.value}/branches/merge`, {
        body: { source, target: into, options: { dry_run: true, images: true, property_level: isPropertyLevel, schema } },
        signal,
      });
      return { plan: told.library, heads: headsOf(standing.branches, source, into) };
    },
    [base.value, source, into, isPropertyLevel, schema, done === null],
  );
  const decide = (conflict: Conflict, decided: Decided) => setDecisions((was) => ({ ...was, [keyOf(conflict)]: decided }));
  const [merge, busy, error] = useAction(async (plan: MergeAnswer, heads: string) => {
    setStale(null);
    const standing = await ask<{ branches: BranchStanding[] }>("GET", `${base.value}/branches/status`);
    if (headsOf(standing.branches, source, into) !== heads) {
      branches.value = standing.branches;
      lookAgain(heads);
      return;
    }
    const resolutions = plan.conflicts.filter((conflict) => conflict.entity_id && decisions[keyOf(conflict)]).map((conflict) => resolution(conflict, decisions[keyOf(conflict)]));
    try {
      const told = await ask<{ library: MergeAnswer; branch_delete_error?: string }>("POST", `${base.value}/branches/merge`, {
        body: { source, target: into, delete_branch: isDeleting, message: message.trim() || undefined, options: { resolutions, property_level: isPropertyLevel, schema } },
        headers: { "Idempotency-Key": newKey() },
      });
      setDone(told.library);
      setDecisions({});
      if (told.branch_delete_error) say(told.branch_delete_error, "bad");
      changed.value += 1;
    } catch (problem) {
      // A decision that does not hold any more is told, and the conflicts are looked at anew; nothing was written.
      if (problem instanceof ApiError && problem.status === 409) dry.reload();
      throw problem;
    }
  });
  /** Somebody else was faster: say who, and repeat the dry run. */
  const lookAgain = (heads: string) => {
    const [sourceHead, intoHead] = heads.split(" ");
    const moved = branches.value.find((each) => (each.name === source && each.head.id !== sourceHead) || (each.name === into && each.head.id !== intoHead));
    const what = moved ? `${moved.name} has a new commit: ${titleOf(moved.head)}, by ${moved.head.actor ?? "somebody"}, ${ago(moved.head.created_at)}.` : `${source} or ${into} is gone.`;
    setStale(`Somebody has changed one of these branches meanwhile. ${what} The dry run was repeated; look again before you merge. Your decisions are kept.`);
    news.value = [];
    dry.reload();
  };
  const known = dry.data?.heads;
  useEffect(() => {
    if (known && !done && !busy && news.value.length && headsOf(branches.value, source, into) !== known) lookAgain(known);
  }, [branches.value]);
  if (done) return <Outcome done={done} source={source} into={into} again={() => setDone(null)} />;
  if (dry.error instanceof ApiError && dry.error.status === 403) return <Problem error={dry.error} />;
  return (
    <Shown of={dry}>
      {({ plan, heads }) => {
        const open = plan.conflicts.filter((conflict) => !isDecided(conflict, decisions[keyOf(conflict)]));
        const tables = Object.entries((plan.stats.tables ?? {}) as Record<string, Record<string, number>>);
        const isNothing = plan.outcome === "already_up_to_date";
        return (
          <>
            {stale && <div class="banner" role="alert">{stale}</div>}
            {isNothing && <Card><Empty title={`${into} has everything of ${source}`}>There is nothing to merge.</Empty></Card>}
            {!isNothing && (
              <Card title="What would change" actions={<label class="check"><input type="checkbox" checked={isPropertyLevel} onChange={(event) => setPropertyLevel(event.currentTarget.checked)} /> combine different properties of one entity</label>}>
                {plan.stats.schema?.length > 0 && <><h3>Schema</h3><StepList steps={plan.stats.schema as Step[]} /><h3>Data</h3></>}
                {tables.length ? (
                  <Counts counts={tables.map(([name, counts]) => ({ kind: name.split(":")[0], type: name.split(":")[1], inserts: counts.inserted ?? 0, updates: counts.updated ?? 0, deletes: counts.deleted ?? 0 }))} />
                ) : (
                  <p class="dim">{plan.conflicts.length ? "Nothing besides the conflicts below." : "No node and no edge changes."}</p>
                )}
                <p class="wrap"><Link to={address("compare", { before: into, after: source })}>Compare the branches in full</Link></p>
              </Card>
            )}
            {(schema !== undefined || plan.conflicts.some((each) => each.kind === SCHEMA)) && <WantedSchema source={source} into={into} isSettled={schema !== undefined && !dry.isLoading} use={setSchema} />}
            {plan.conflicts.length > 0 && (
              <Card
                title={`${plural(plan.conflicts.length, "conflict")}, ${open.length ? `${open.length} to decide` : "all decided"}`}
                actions={<><Button kind="quiet" onClick={() => setDecisions(Object.fromEntries(plan.conflicts.map((each) => [keyOf(each), { whole: "ours" }])))}>All ours</Button><Button kind="quiet" onClick={() => setDecisions(Object.fromEntries(plan.conflicts.map((each) => [keyOf(each), { whole: "theirs" }])))}>All theirs</Button></>}
              >
                <ul class="conflicts">
                  {plan.conflicts.map((conflict) => <ConflictItem key={keyOf(conflict) + conflict.kind} conflict={conflict} decided={decisions[keyOf(conflict)]} decide={(given) => decide(conflict, given)} source={source} into={into} />)}
                </ul>
              </Card>
            )}
            {error && <Problem error={error} />}
            {!isNothing && may("branch_merge") && (
              <div class="merge-end">
                <label class="grow merge-message"><span class="visually-hidden">Message of the commit</span><input class="wide" value={message} placeholder="Message of the commit" onInput={(event) => setMessage(event.currentTarget.value)} /></label>
                <label class="check"><input type="checkbox" checked={isDeleting} onChange={(event) => setDeleting(event.currentTarget.checked)} /> delete {source} afterwards</label>
                <Button kind="main" busy={busy} disabled={open.length > 0} onClick={() => void merge(plan, heads)}>Merge {source} into {into}</Button>
              </div>
            )}
          </>
        );
      }}
    </Shown>
  );
}

/** Where both sides declare something differently, somebody says what the schema is afterwards. */
function WantedSchema({ source, into, isSettled, use }: { source: string; into: string; isSettled: boolean; use: (schema: string) => void }) {
  const [wanted, setWanted] = useState("");
  const [turn, setTurn] = useState(0);
  const texts = useData(
    async (signal) => {
      const of = (name: string) => ask<{ schema_source: string }>("GET", `${base.value}/schema`, { query: { branch: name }, signal }).then((told) => told.schema_source);
      const [ours, theirs] = await Promise.all([of(into), of(source)]);
      setWanted(ours);
      setTurn((was) => was + 1);
      return { ours, theirs };
    },
    [base.value, source, into],
  );
  const take = (given: string) => {
    setWanted(given);
    setTurn(turn + 1);
  };
  return (
    <Card title="The schema after the merge" actions={texts.data && <><Button kind="quiet" onClick={() => take(texts.data!.ours)}>That of {into}</Button><Button kind="quiet" onClick={() => take(texts.data!.theirs)}>That of {source}</Button></>}>
      <Shown of={texts}>{() => <Editor text={wanted} turn={turn} kind="pg" label="Schema after the merge" change={setWanted} />}</Shown>
      <div class="actions wrap"><Button kind="main" disabled={!wanted.trim()} onClick={() => use(wanted)}>Use this schema</Button>{isSettled && <Badge kind="good">settled</Badge>}</div>
    </Card>
  );
}

function headsOf(all: BranchStanding[], ...names: string[]): string {
  return names.map((name) => all.find((each) => each.name === name)?.head.id ?? "gone").join(" ");
}

function ConflictItem({ conflict, decided, decide, source, into }: { conflict: Conflict; decided?: Decided; decide: (given: Decided) => void; source: string; into: string }) {
  const names = differing(conflict);
  const isBoth = conflict.ours !== undefined && conflict.theirs !== undefined;
  const side = (name: string): Side | "value" | undefined => {
    if (decided?.whole) return decided.whole;
    const choice = decided?.each?.[name] ?? implied(conflict, name);
    return typeof choice === "object" ? "value" : choice;
  };
  const pick = (name: string, choice: Side | { value: string }) => {
    const before = decided?.whole ? Object.fromEntries(names.map((each) => [each, decided.whole!])) : decided?.each;
    const { [name]: _, ...others } = before ?? {};
    // A value of one's own that is deleted again is no decision.
    decide({ each: typeof choice === "object" && choice.value === "" ? others : { ...others, [name]: choice } });
  };
  const title = conflict.entity_id ?? conflict.type_name;
  return (
    <li class={`conflict ${isDecided(conflict, decided) ? "decided" : ""}`}>
      <div class="conflict-head">
        <TypeName name={conflict.type_name} /> <b><bdi>{title}</bdi></b> <span class="dim">{WORDS[conflict.kind] ?? conflict.kind}</span>
        {isDecided(conflict, decided) && <Badge kind="good">decided</Badge>}
      </div>
      {(!isBoth || !conflict.entity_id || !names.length) && <p>{conflict.message}</p>}
      {conflict.kind === SCHEMA && (
        <dl class="facts">
          <dt>Ours ({into})</dt><dd><code>{text(conflict.ours?.declaration ?? "not declared")}</code></dd>
          <dt>Theirs ({source})</dt><dd><code>{text(conflict.theirs?.declaration ?? "not declared")}</code></dd>
        </dl>
      )}
      {conflict.entity_id ? (
        <>
          <div class="actions" role="group" aria-label={`Decide about ${title}`}>
            <Button aria-pressed={decided?.whole === "ours"} onClick={() => decide({ whole: "ours" })}>{conflict.ours === undefined && conflict.theirs !== undefined ? `Ours (${into}): stays deleted` : `Ours (${into})`}</Button>
            <Button aria-pressed={decided?.whole === "theirs"} onClick={() => decide({ whole: "theirs" })}>{conflict.theirs === undefined && conflict.ours !== undefined ? `Theirs (${source}): is deleted` : `Theirs (${source})`}</Button>
          </div>
          {names.length > 0 && (
            <div class="scroll-x" tabIndex={0} role="group" aria-label={`The values of ${title}`}>
              <table class="three">
                <thead><tr><th>Property</th><th>Base</th><th>Ours ({into})</th><th>Theirs ({source})</th>{isBoth && <th>Your value</th>}</tr></thead>
                <tbody>
                  {names.map((name) => (
                    <tr key={name}>
                      <th scope="row">{name}</th>
                      <td data-side="Base"><Value value={conflict.base?.[name]} /></td>
                      {(["ours", "theirs"] as const).map((which) => (
                        <td data-side={which === "ours" ? `Ours (${into})` : `Theirs (${source})`} class={side(name) === which ? "taken" : ""}>
                          {isBoth ? (
                            <label class="check"><input type="radio" name={`${keyOf(conflict)} ${name}`} checked={side(name) === which} onChange={() => pick(name, which)} aria-label={`${name}: take ${which}`} /> <Value value={conflict[which]?.[name]} /></label>
                          ) : (
                            conflict[which] ? <Value value={conflict[which]?.[name]} /> : <span class="null">deleted</span>
                          )}
                        </td>
                      ))}
                      {isBoth && (
                        <td data-side="Your value" class={side(name) === "value" ? "taken" : ""}>
                          <input aria-label={`${name}: another value`} placeholder="another value" value={typeof decided?.each?.[name] === "object" ? (decided.each[name] as { value: string }).value : ""} onInput={(event) => pick(name, { value: event.currentTarget.value })} />
                        </td>
                      )}
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )}
        </>
      ) : (
        <p class="dim">{conflict.kind === SCHEMA ? "Say above what the schema is after the merge." : `This rule is about several entities. Change one of them on ${source} or ${into}, then look again.`}</p>
      )}
    </li>
  );
}

const DECIDED: Record<string, (source: string, into: string) => string> = {
  ours: (_, into) => `kept as on ${into}`,
  theirs: (source) => `taken from ${source}`,
  value: () => "decided property by property",
};

function Outcome({ done, source, into, again }: { done: MergeAnswer; source: string; into: string; again: () => void }) {
  const [isReverting, setReverting] = useState(false);
  return (
    <Card title="Merged">
      <p>
        {source} was merged into {into}{done.outcome === "fast_forward" ? ", which had nothing of its own" : ""}
        {done.commit && <> in commit <Link to={address("history", { branch: into, commit: done.commit.id })}><code>{brief(done.commit.id)}</code></Link></>}.{" "}
        {plural(done.stats.inserted ?? 0, "entity is", "entities are")} new, {plural(done.stats.updated ?? 0, "is", "are")} changed, {plural(done.stats.deleted ?? 0, "is", "are")} gone.
      </p>
      {done.decided.length > 0 && (
        <ul class="plain-list">{done.decided.slice(0, 20).map((each) => <li><span>{String(each.type_key).split(":")[1]} <bdi>{each.entity_id}</bdi></span><span class="dim">{DECIDED[each.take]?.(source, into) ?? each.take}</span></li>)}</ul>
      )}
      <div class="actions wrap">
        {done.commit && may("change") && <Button onClick={() => setReverting(true)}>Revert this merge</Button>}
        <Link class="button" to={address("overview", { branch: into === "main" ? null : into, at: null })}>Look at {into}</Link>
        <Button kind="quiet" onClick={again}>Merge again</Button>
      </div>
      {isReverting && done.commit && <PickDialog verb="revert" id={done.commit.id} close={() => setReverting(false)} on={into} />}
    </Card>
  );
}
