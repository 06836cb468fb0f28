// Write a query, see what is wrong with it while typing, run it, and look at the answer as a table, a picture or JSON.
import type { Diagnostic } from "@codemirror/lint";
import { useMemo, useRef, useState } from "preact/hooks";
import { ask, newKey, request, type Rows } from "../api";
import { integer, parse, stringify } from "../json";
import { catalog, changed, may, pastQueries, remember, useData } from "../data";
import { colourOf } from "../colours";
import { ago, brief, csv, number, plural, save, short } from "../format";
import { steps, variableTypes } from "../gq";
import type { Handle } from "../parts/graphview";
import { Editor, GraphView } from "../parts/lazy";
import { DataTable } from "../parts/table";
import { Badge, Button, Card, Dialog, Empty, Field, Problem, SaveButton, say, Tabs, TypeName, Value, Link } from "../parts/ui";
import { address, adjust, base, branch, route, target } from "../route";
import { nodeTypes } from "./explore";

interface Param {
  name: string;
  kind: string;
  nullable: boolean;
  item_kind?: string;
  vector_dim?: number;
}
interface Linted {
  status: string;
  results: { name: string; kind: "read" | "mutation"; status: string; operation?: { params: Param[] } }[];
  diagnostics: { severity: "error" | "warning" | "info"; message: string; start: number | null; end: number | null; line: number | null }[];
}
interface Stored {
  name: string;
  mutation: boolean;
  description?: string;
  params: Param[];
}
type Answer =
  | { kind: "rows"; told: Rows; seconds: number; text: string }
  | { kind: "changed"; told: any; seconds: number }
  | { kind: "plan"; told: { plan: string; steps: string; analyzed: boolean } };

function example(): string {
  const type = nodeTypes()[0];
  if (!type) return "";
  return `query first() {\n  match { $n: ${type.name} }\n  return { $n.* }\n  limit 20\n}\n`;
}

/** Byte offsets of UTF-8, as the server counts, as places in a text of this page. */
function places(text: string): (offset: number) => number {
  if (/^[\x00-\x7f]*$/.test(text)) return (offset) => Math.min(offset, text.length);
  const whole = new TextEncoder().encode(text);
  const decoder = new TextDecoder();
  return (offset) => decoder.decode(whole.slice(0, offset)).length;
}

function toValue(param: Param, given: string): unknown {
  if (given === "" && param.nullable) return null;
  switch (param.kind) {
    case "int":
      return integer(given) ?? given;
    case "float":
      return given.trim() === "" || Number.isNaN(Number(given)) ? given : Number(given);
    case "bool":
      return given === "true" ? true : given === "false" ? false : given;
    case "list":
    case "vector":
      try {
        return parse(given);
      } catch {
        return given;
      }
    default:
      return given;
  }
}

export default function Query() {
  const params = route.value.params;
  const [text, setText] = useState(() => params.get("text") ?? pastQueries()[0]?.text ?? example());
  const [turn, setTurn] = useState(0);
  const [linted, setLinted] = useState<Linted | null>(null);
  const [name, setName] = useState<string | null>(null);
  const [values, setValues] = useState<Record<string, string>>({});
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [running, setRunning] = useState<AbortController | null>(null);
  const [tab, setTab] = useState<"table" | "graph" | "json">("table");
  const [past, setPast] = useState(pastQueries());
  const stored = useData((signal) => ask<{ queries: Stored[] }>("GET", `${base.value}/queries`, { signal }), [base.value]);
  const [chosenStored, setStored] = useState<Stored | null>(null);
  const latest = useRef("");
  const checked = useRef<{ text: string; told: Linted } | null>(null);

  const check = async (given: string): Promise<Diagnostic[]> => {
    latest.current = given;
    const told = await ask<Linted>("POST", `${base.value}/lint`, { body: { query: given, branch: branch.value ?? undefined } }).catch(() => null);
    if (!told || latest.current !== given) return [];
    setLinted(told);
    checked.current = { text: given, told };
    const at = places(given);
    return told.diagnostics.map((found) => {
      const from = Math.min(found.start === null ? 0 : at(found.start), given.length);
      const to = Math.min(Math.max(found.end === null ? from : at(found.end), from + 1), given.length);
      return { from: Math.min(from, to), to, severity: found.severity, message: found.message };
    });
  };

  const queries = linted?.results ?? [];
  const now = queries.find((each) => each.name === name) ?? queries[0];
  /** The chosen query of the text as it stands now, which may be newer than what was checked last. */
  const current = async (signal: AbortSignal) => {
    if (checked.current?.text !== text) {
      const told = await ask<Linted>("POST", `${base.value}/lint`, { body: { query: text, branch: branch.value ?? undefined }, signal });
      checked.current = { text, told };
      setLinted(told);
    }
    const all = checked.current!.told.results;
    return all.find((each) => each.name === name) ?? all[0];
  };
  const isMutation = chosenStored ? chosenStored.mutation : now?.kind === "mutation";
  const asked: Param[] = chosenStored?.params ?? now?.operation?.params ?? [];
  const given = Object.fromEntries(asked.filter((each) => !(each.nullable && !values[each.name])).map((each) => [each.name, toValue(each, values[each.name] ?? "")]));

  const work = async (doing: (signal: AbortSignal) => Promise<Answer>) => {
    const stop = new AbortController();
    setRunning(stop);
    setError(null);
    try {
      setAnswer(await doing(stop.signal));
    } catch (problem) {
      if ((problem as Error).name === "AbortError") say("The query was cancelled");
      else setError(problem as Error);
    } finally {
      setRunning(null);
    }
  };
  const run = () =>
    work(async (signal) => {
      const started = performance.now();
      if (chosenStored) {
        const told = await ask<any>("POST", `${base.value}/queries/${encodeURIComponent(chosenStored.name)}`, { body: { params: given, ...(isMutation ? { branch: branch.value } : target.value) }, signal });
        const seconds = (performance.now() - started) / 1000;
        if (!told.rows) {
          changed.value += 1;
          return { kind: "changed", told, seconds };
        }
        return { kind: "rows", told, seconds, text: "" };
      }
      adjust({ text });
      const asked = await current(signal);
      if (asked?.kind === "mutation") {
        const told = await ask<any>("POST", `${base.value}/mutate`, { body: { query: text, name: asked.name || undefined, params: given, branch: branch.value }, signal, headers: { "Idempotency-Key": newKey() } });
        remember(text, told.affected_nodes + told.affected_edges);
        setPast(pastQueries());
        changed.value += 1;
        return { kind: "changed", told, seconds: (performance.now() - started) / 1000 };
      }
      const told = await ask<Rows>("POST", `${base.value}/query`, { body: { query: text, name: asked?.name || undefined, params: given, ...target.value }, signal });
      remember(text, told.row_count);
      setPast(pastQueries());
      return { kind: "rows", told, seconds: (performance.now() - started) / 1000, text };
    });
  const explain = (analyze: boolean) =>
    work(async (signal) => ({ kind: "plan", told: await ask("POST", `${base.value}/explain`, { body: { query: text, name: (await current(signal))?.name || undefined, params: given, analyze, ...target.value }, signal }) }));
  const parquet = async () => {
    const found = await request("POST", `${base.value}/query`, { body: { query: text, name: now?.name || undefined, params: given, ...target.value }, accept: "application/vnd.apache.parquet" });
    save("result.parquet", "application/vnd.apache.parquet", await found.arrayBuffer());
  };
  const forbidden = isMutation && (!may("change") || !branch.value);

  return (
    <>
      <h1>Query</h1>
      <div class="split">
        <div class="grow">
          <Card>
            {chosenStored ? (
              <div class="stored-head">
                <p><b>{chosenStored.name}</b> <Badge>{chosenStored.mutation ? "changes data" : "reads"}</Badge></p>
                {chosenStored.description && <p>{chosenStored.description}</p>}
                <Button kind="quiet" onClick={() => { setStored(null); setAnswer(null); }}>Back to the editor</Button>
              </div>
            ) : (
              <Editor text={text} turn={turn} kind="gq" label="Query" change={setText} run={() => void run()} check={check} />
            )}
            {!chosenStored && queries.length > 1 && (
              <Field label="Query of this text">
                <select value={now?.name} onChange={(event) => setName(event.currentTarget.value)}>{queries.map((each) => <option>{each.name}</option>)}</select>
              </Field>
            )}
            {asked.length > 0 && (
              <div class="params" role="group" aria-label="Parameters">
                {asked.map((each) => (
                  <Field key={each.name} label={`$${each.name}`} hint={`${each.kind}${each.item_kind ? ` of ${each.item_kind}` : ""}${each.nullable ? ", may be empty" : ""}`}>
                    {each.kind === "bool" ? (
                      <select value={values[each.name] ?? ""} onChange={(event) => setValues({ ...values, [each.name]: event.currentTarget.value })}>
                        <option value=""></option><option>true</option><option>false</option>
                      </select>
                    ) : (
                      <input
                        type={each.kind === "date" ? "date" : "text"}
                        inputMode={each.kind === "int" || each.kind === "float" ? "decimal" : undefined}
                        placeholder={each.kind === "list" || each.kind === "vector" ? "[…]" : ""}
                        value={values[each.name] ?? ""}
                        onInput={(event) => setValues({ ...values, [each.name]: event.currentTarget.value })}
                      />
                    )}
                  </Field>
                ))}
              </div>
            )}
            <div class="actions wrap">
              {running ? (
                <Button kind="danger" onClick={() => running.abort()}>Cancel</Button>
              ) : (
                <Button kind="main" disabled={!!forbidden || (!chosenStored && !text.trim())} onClick={() => void run()}>
                  {isMutation ? `Run on ${branch.value ?? "…"}` : "Run"}
                </Button>
              )}
              {!isMutation && !chosenStored && <Button disabled={!!running} onClick={() => void explain(false)}>Explain</Button>}
              {!isMutation && !chosenStored && <Button disabled={!!running} onClick={() => void explain(true)}>Measure</Button>}
              <span class="dim hint-key">Ctrl+Enter runs</span>
              {running && <span class="loading" role="status"><span class="spinner" aria-hidden="true" /> Running…</span>}
            </div>
            {forbidden && <p class="dim">{branch.value ? "Your token may not change this branch." : "An old commit can not be changed; choose a branch above."}</p>}
          </Card>
          {error && <Problem error={error} />}
          {answer && !error && <AnswerCard answer={answer} tab={tab} setTab={setTab} parquet={chosenStored ? undefined : parquet} />}
        </div>
        <Card class="aside narrow" title="Queries">
          <h3>Stored</h3>
          {stored.data?.queries.length ? (
            <ul class="pick-list">
              {stored.data.queries.map((each) => (
                <li><button type="button" aria-pressed={chosenStored?.name === each.name} onClick={() => { setStored(each); setAnswer(null); setError(null); }}><b>{each.name}</b><span class="dim">{each.description ?? (each.mutation ? "changes data" : "reads")}</span></button></li>
              ))}
            </ul>
          ) : (
            <p class="dim">This server has none for this graph.</p>
          )}
          <h3>Yours</h3>
          {past.length ? (
            <ul class="pick-list">
              {past.slice(0, 15).map((each) => (
                <li><button type="button" onClick={() => { setStored(null); setText(each.text); setTurn(turn + 1); }}><code>{short(each.text.replace(/\s+/g, " "), 90)}</code><span class="dim">{plural(each.rows, "row")} · {ago(each.at * 1000)}</span></button></li>
              ))}
            </ul>
          ) : (
            <p class="dim">What you run is kept here, in this browser only.</p>
          )}
        </Card>
      </div>
    </>
  );
}

function AnswerCard({ answer, tab, setTab, parquet }: { answer: Answer; tab: "table" | "graph" | "json"; setTab: (tab: "table" | "graph" | "json") => void; parquet?: () => Promise<void> }) {
  if (answer.kind === "plan") return <PlanCard told={answer.told} />;
  if (answer.kind === "changed") {
    const told = answer.told;
    return (
      <Card title="Done">
        <p>{plural(told.affected_nodes, "node")} and {plural(told.affected_edges, "edge")} on {told.branch}{told.commit ? <> in commit <code>{brief(told.commit.graph_commit_id)}</code></> : "; nothing was to be changed"}.</p>
      </Card>
    );
  }
  const { told } = answer;
  return (
    <Card
      title={<Tabs label="Answer" of={[["table", "Table"], ["graph", "Graph"], ["json", "JSON"]]} now={tab} pick={setTab} />}
      actions={
        <>
          <span class="dim">{plural(told.row_count, "row")}, {answer.seconds.toFixed(2)} s</span>
          <SaveButton kind="CSV" save={() => save("result.csv", "text/csv", csv(told.columns, told.rows))} />
          <SaveButton kind="JSON" save={() => save("result.json", "application/json", stringify(told.rows, 1))} />
          {parquet && <SaveButton kind="Parquet" save={() => void parquet().catch((problem) => say(problem.message, "bad"))} />}
        </>
      }
    >
      {!told.row_count ? (
        <Empty title="No row fits">The query is fine; nothing in the graph matches it.</Empty>
      ) : tab === "table" ? (
        <ResultTable told={told} />
      ) : tab === "json" ? (
        <RowsAsJson rows={told.rows} />
      ) : (
        <ResultGraph told={told} text={answer.text} />
      )}
    </Card>
  );
}

/** Rows and letters that are shown as JSON at most; a browser stands still over more. */
const JSON_ROWS = 1000;
const JSON_LETTERS = 400_000;

function RowsAsJson({ rows }: { rows: Record<string, unknown>[] }) {
  const [shown, count] = useMemo(() => {
    const parts: string[] = [];
    let letters = 0;
    for (const row of rows.slice(0, JSON_ROWS)) {
      const part = stringify(row, 1);
      if (parts.length && letters + part.length > JSON_LETTERS) break;
      parts.push(part);
      letters += part.length;
    }
    return [`[\n${parts.join(",\n")}\n]`.slice(0, 2 * JSON_LETTERS), parts.length];
  }, [rows]);
  return (
    <>
      <pre class="json" tabIndex={0}>{shown}</pre>
      {rows.length > count && <p class="dim">The first {plural(count, "row")}; the file has all {number(rows.length)}.</p>}
    </>
  );
}

/** The rows; a row that is chosen is shown with every value in full. */
function ResultTable({ told }: { told: Rows }) {
  const [row, setRow] = useState<Record<string, unknown> | null>(null);
  const columns = useMemo(() => columnsOf(told), [told]);
  return (
    <>
      <DataTable label="Result" rows={told.rows} columns={columns} pick={setRow} />
      {row && (
        <Dialog title={`Row ${number(told.rows.indexOf(row) + 1)}`} close={() => setRow(null)}>
          <table class="properties">
            <tbody>{told.columns.map((name) => <tr key={name}><th scope="row">{name}</th><td><Value value={row[name]} /></td></tr>)}</tbody>
          </table>
        </Dialog>
      )}
    </>
  );
}

function columnsOf(told: Rows) {
  return told.columns.map((name) => ({
    name,
    value: (row: Record<string, unknown>) => row[name],
    align: /number|bigint/.test(typeof told.rows.find((row) => row[name] !== null)?.[name]) ? ("right" as const) : undefined,
  }));
}

/** Pictures of more nodes are drawn when somebody insists. */
const MANY = 3000;
const MOST_DRAWN = 50_000;

function ResultGraph({ told, text }: { told: Rows; text: string }) {
  const [chosen, setChosen] = useState<string | null>(null);
  const [agreed, setAgreed] = useState(false);
  const drawn = useMemo(() => {
    const types = variableTypes(text);
    const idColumn = new Map<string, string>();
    for (const [variable, type] of types) {
      const about = catalog.value?.types.find((each) => each.name === type && each.kind === "node");
      if (!about) continue;
      const candidates = [variable, `${variable}.@id`, `${variable}.id`, ...(about.key?.length === 1 ? [`${variable}.${about.key[0]}`] : [])];
      const found = candidates.find((column) => told.columns.includes(column));
      if (found) idColumn.set(variable, found);
    }
    const marks = new Map<string, { key: string; label: string; colour: string; type: string }>();
    const lines = new Map<string, { key: string; from: string; to: string; label: string }>();
    for (const row of told.rows.slice(0, MOST_DRAWN)) {
      const keys = new Map<string, string>();
      for (const [variable, column] of idColumn) {
        if (row[column] === null) continue;
        const key = `${types.get(variable)} ${row[column]}`;
        keys.set(variable, key);
        if (!marks.has(key)) marks.set(key, { key, label: String(row[column]), colour: colourOf(types.get(variable)!), type: types.get(variable)! });
      }
      for (const step of steps(text)) {
        const from = keys.get(step.from);
        const to = keys.get(step.to);
        if (from && to) lines.set(`${step.edge} ${from} ${to}`, { key: `${step.edge} ${from} ${to}`, from, to, label: step.edge });
      }
    }
    return { marks: [...marks.values()], lines: [...lines.values()] };
  }, [told, text]);
  if (!drawn.marks.length)
    return <Empty title="These rows name no nodes">Return a node itself, such as <code>$p</code>, or its key, to see it as a graph.</Empty>;
  if (drawn.marks.length > MANY && !agreed)
    return <Empty title={`${number(drawn.marks.length)} nodes are many for a picture`}><Button onClick={() => setAgreed(true)}>Draw them anyway</Button></Empty>;
  const node = drawn.marks.find((mark) => mark.key === chosen);
  return (
    <>
      <GraphView marks={drawn.marks} lines={drawn.lines} chosen={chosen} pick={setChosen} ready={(given: Handle) => { (window as any).studioPicture = given; }} />
      <ul class="legend" aria-label="Types in the picture">
        {[...new Set(drawn.marks.map((mark) => mark.type))].map((name) => <li><TypeName name={name} /></li>)}
        <li class="dim">{plural(drawn.marks.length, "node")}, {plural(drawn.lines.length, "edge")}</li>
        {node && <li><Link to={address("explore", { type: node.type, id: node.label })}>Explore <bdi>{short(node.label, 40)}</bdi></Link></li>}
      </ul>
    </>
  );
}

interface PlanLine {
  depth: number;
  text: string;
  measured: string;
  notes: string[];
}

function PlanCard({ told }: { told: { plan: string; steps: string; analyzed: boolean } }) {
  const lines: PlanLine[] = [];
  for (const line of (told.steps || told.plan).split("\n")) {
    const depth = (line.length - line.trimStart().length) / 2;
    const content = line.trim();
    if (content.startsWith("·")) lines.at(-1)?.notes.push(content.slice(1).trim());
    else if (content) {
      const measured = /^(\S+)\s{2,}(\d+ rows?, .*)$/.exec(content);
      lines.push({ depth, text: measured ? measured[1] : content, measured: measured ? measured[2] : "", notes: [] });
    }
  }
  return (
    <Card title={told.analyzed ? "How it was answered" : "How it would be answered"}>
      <ul class="plan">
        {lines.map((line) => (
          <li style={{ paddingLeft: `${line.depth * 20 + 4}px` }}>
            <span class="plan-step">{line.text}</span>
            {line.measured && <Badge>{line.measured}</Badge>}
            {line.notes.map((note) => <span class="dim"> · {note}</span>)}
          </li>
        ))}
      </ul>
      <details><summary>The plan in full</summary><pre class="json" tabIndex={0}>{told.plan}</pre></details>
    </Card>
  );
}
