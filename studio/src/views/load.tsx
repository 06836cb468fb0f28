// Load a file: drop it, map its columns, see the rows, load it into a new branch; every problem with its line, to be mended.
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, ask, newKey, type TypeInfo } from "../api";
import { integer, parse, stringify } from "../json";
import { branches, catalog, changed, may } from "../data";
import { brief, bytes, number, plural, short, text } from "../format";
import { Badge, Button, Card, Empty, Field, Link, Problem, TypeName, useAction } from "../parts/ui";
import { address, at, base, branch } from "../route";

interface Source {
  name: string;
  size: number;
  /** JSON lines as they are, or a table that is mapped to a type. */
  lines: string[] | null;
  columns: string[];
  rows: unknown[][];
}
interface Fault {
  line: number;
  message: string;
}

/** Bytes of the largest file that a browser reads; the command line loads larger ones. */
const LARGEST = 300_000_000;

async function readFile(file: File): Promise<Source> {
  if (file.size > LARGEST) throw new Error(`${file.name} is larger than ${bytes(LARGEST)}; load it with \`omnigraph load\`.`);
  const about = { name: file.name, size: file.size };
  if (/\.(jsonl|ndjson|json)$/i.test(file.name)) return { ...about, lines: (await file.text()).split(/\r?\n/), columns: [], rows: [] };
  if (/\.(csv|tsv|txt)$/i.test(file.name)) {
    const { default: Papa } = await import("papaparse");
    const told = Papa.parse<string[]>(await file.text(), { skipEmptyLines: "greedy", delimiter: /\.tsv$/i.test(file.name) ? "\t" : "" });
    const [columns, ...rows] = told.data;
    if (!columns) throw new Error("The file is empty.");
    return { ...about, lines: null, columns, rows };
  }
  if (/\.(parquet|pq)$/i.test(file.name)) {
    const { parquetReadObjects } = await import("hyparquet");
    const whole = await file.arrayBuffer();
    const found = await parquetReadObjects({ file: { byteLength: whole.byteLength, slice: (from: number, to?: number) => whole.slice(from, to) } });
    const columns = [...new Set(found.slice(0, 1000).flatMap((row) => Object.keys(row)))];
    return { ...about, lines: null, columns, rows: found.map((row) => columns.map((name) => row[name])) };
  }
  throw new Error(`${file.name} is none of JSONL, CSV, TSV and Parquet.`);
}

function wanted(type: TypeInfo): { name: string; hint: string; needed: boolean }[] {
  const ends = type.kind === "edge" ? [{ name: "from", hint: `key of a ${type.from}`, needed: true }, { name: "to", hint: `key of a ${type.to}`, needed: true }] : [];
  const own = type.properties.filter((each) => each.kind !== "Blob").map((each) => ({ name: each.name, hint: each.type, needed: !each.nullable && each.kind !== "Vector" }));
  return [...ends, ...own];
}

function guess(type: TypeInfo, columns: string[]): Record<string, string> {
  const plain = (name: string) => name.toLowerCase().replace(/[^a-z0-9]/g, "");
  const aliases: Record<string, string[]> = { from: ["src", "source"], to: ["dst", "target"] };
  const found: Record<string, string> = {};
  for (const { name } of wanted(type)) {
    const column = columns.find((each) => [name, ...(aliases[name] ?? [])].some((known) => plain(known) === plain(each)));
    if (column !== undefined) found[name] = column;
  }
  return found;
}

function convert(value: unknown, property: { kind: string; is_list: boolean } | undefined): unknown {
  if (value === null || value === undefined || value === "") return null;
  if (value instanceof Date) return property?.kind === "Date" ? value.toISOString().slice(0, 10) : value.toISOString();
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : value;
  if (Array.isArray(value)) return value.map((item) => convert(item, property && { ...property, is_list: false }));
  if (typeof value !== "string" || !property) return value;
  const text = value.trim();
  if (property.is_list || property.kind === "Vector") {
    try {
      return parse(text);
    } catch {
      return text.split(";").map((item) => convert(item.trim(), { ...property, is_list: false, kind: property.kind === "Vector" ? "F32" : property.kind }));
    }
  }
  if (/^[IU]\d+$/.test(property.kind)) return integer(text) ?? (text !== "" && Number.isFinite(Number(text)) ? Number(text) : text);
  if (/^F\d+$/.test(property.kind)) return text !== "" && Number.isFinite(Number(text)) ? Number(text) : text;
  if (property.kind === "Bool") return /^(true|yes|1)$/i.test(text) ? true : /^(false|no|0)$/i.test(text) ? false : text;
  return value;
}

function mapped(source: Source, type: TypeInfo, mapping: Record<string, string>): string[] {
  const place = new Map(source.columns.map((name, at) => [name, at]));
  const about = new Map(type.properties.map((each) => [each.name, each]));
  return source.rows.map((row) => {
    const data: Record<string, unknown> = {};
    for (const [name, column] of Object.entries(mapping)) {
      if (!column || name === "from" || name === "to") continue;
      const value = convert(row[place.get(column)!], about.get(name));
      if (value !== null) data[name] = value;
    }
    const end = (name: string) => { const value = row[place.get(mapping[name])!]; return value === null || value === undefined ? null : String(value); };
    return stringify(type.kind === "edge" ? { edge: type.name, from: end("from"), to: end("to"), data } : { type: type.name, data });
  });
}

function fresh(name: string): string {
  const stem = name.replace(/\.[^.]*$/, "").toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "") || "file";
  const known = new Set(branches.value.map((each) => each.name));
  let found = `load/${stem}`;
  for (let number = 2; known.has(found); number++) found = `load/${stem}-${number}`;
  return found;
}

export default function Load() {
  const types = catalog.value?.types ?? [];
  const [source, setSource] = useState<Source | null>(null);
  const [typeName, setTypeName] = useState(types[0]?.name ?? "");
  const [mapping, setMapping] = useState<Record<string, string>>({});
  const [mode, setMode] = useState("merge");
  const [isNew, setNew] = useState(may("change_new_branch"));
  const [name, setName] = useState("");
  const [edits, setEdits] = useState<Record<number, string>>({});
  /** What was typed into the cells of a row, by its number and the name of the column. */
  const [cells, setCells] = useState<Record<number, Record<string, string>>>({});
  const [faults, setFaults] = useState<{ total: number; list: Fault[] } | null>(null);
  const [progress, setProgress] = useState<{ text: string; part?: number } | null>(null);
  const stop = useRef<{ cancel: () => void } | null>(null);
  const told = useRef<HTMLDivElement>(null);
  const [done, setDone] = useState<any>(null);
  useEffect(() => {
    // What came of a load is below the form; bring it to where it is read.
    if (faults || done) {
      told.current?.scrollIntoView({ block: "start" });
      told.current?.focus({ preventScroll: true });
    }
  }, [faults, done]);
  const [isOver, setOver] = useState(false);
  const type = types.find((each) => each.name === typeName) ?? types[0];
  useEffect(() => {
    if (source && !source.lines && type) setMapping(guess(type, source.columns));
  }, [source, typeName]);

  const [take, isReading, readError] = useAction(async (file: File) => {
    setFaults(null);
    setDone(null);
    setEdits({});
    setCells({});
    const found = await readFile(file);
    setSource(found);
    setName(fresh(file.name));
    const stem = file.name.replace(/\.[^.]*$/, "").toLowerCase();
    const like = types.find((each) => each.name.toLowerCase() === stem || `${each.name.toLowerCase()}s` === stem);
    if (like) setTypeName(like.name);
  });
  const lines = (): string[] => {
    const rows = Object.keys(cells).length ? source!.rows.map((row, at) => (cells[at + 1] ? row.map((value, place) => cells[at + 1][source!.columns[place]] ?? value) : row)) : source!.rows;
    const all = source!.lines ?? mapped({ ...source!, rows }, type, mapping);
    return all.map((line, at) => edits[at + 1] ?? line);
  };
  const into = isNew ? name.trim() : (branch.value ?? "main");
  const [load, busy, error] = useAction(async () => {
    setFaults(null);
    setDone(null);
    setProgress({ text: "Sending" });
    const aborter = new AbortController();
    stop.current = { cancel: () => aborter.abort() };
    try {
      const content = lines().join("\n");
      const key = newKey();
      const send = () =>
        ask<any>("POST", `${base.value}/load/ndjson`, {
          raw: content,
          type: "application/x-ndjson",
          query: { branch: into, mode, ...(isNew ? { from: branch.value ?? "main" } : {}) },
          headers: { Prefer: "respond-async", "Idempotency-Key": key },
          signal: aborter.signal,
        });
      let told = await send();
      let again = 3;
      while (told.job_id && told.state === "running") {
        const job = `${base.value}/jobs/${told.job_id}`;
        stop.current = { cancel: () => void ask("DELETE", job).catch(() => {}) };
        const now = told.progress;
        setProgress(now ? { text: `${STAGES[now.stage] ?? now.stage}${now.rows ? `, ${plural(now.rows, "row")}` : ""}`, part: now.total > 1 ? now.done / now.total : undefined } : { text: "Loading" });
        await new Promise((next) => setTimeout(next, 350));
        told = await ask<any>("GET", job).catch((problem: ApiError) => {
          // A server that was started anew knows no jobs of before; the same key finds out what became of this one.
          if (problem.status === 404 && again-- > 0) return { state: "lost" };
          throw problem;
        });
        if (told.state === "lost") told = await send();
      }
      if (told.job_id) {
        if (told.state !== "done") throw new ApiError(told.error?.error ?? "The load was lost; try again.", told.status ?? 500, told.error ?? {});
        told = told.result;
      }
      setDone(told);
      changed.value += 1;
    } catch (problem) {
      const found = faultsOf(problem as ApiError);
      if (!found) throw problem;
      setFaults(found);
    } finally {
      setProgress(null);
      stop.current = null;
    }
  });
  if (at.value) return <><h1>Load</h1><Card><Empty title="An old commit can not be changed">Choose a branch at the top, then load into it or into a new branch.</Empty></Card></>;
  if (!may("change") && !may("change_new_branch")) return <><h1>Load</h1><Card><Empty title="Your token may not load anything here" /></Card></>;
  const preview = source ? (source.lines ? source.lines.filter((line) => line.trim()).slice(0, 5) : null) : null;
  const isMended = Object.keys(edits).length + Object.keys(cells).length > 0;
  const unused = source && !source.lines ? source.columns.filter((name) => !Object.values(mapping).includes(name)) : [];
  const lacking = source && !source.lines && type ? wanted(type).filter((each) => each.needed && !mapping[each.name]) : [];
  return (
    <>
      <h1>Load</h1>
      <Card>
        <label
          class={`drop ${isOver ? "over" : ""}`}
          onDragOver={(event) => { event.preventDefault(); setOver(true); }}
          onDragLeave={() => setOver(false)}
          onDrop={(event) => { event.preventDefault(); setOver(false); const file = event.dataTransfer?.files[0]; if (file) void take(file); }}
        >
          <input class="visually-hidden" type="file" accept=".jsonl,.ndjson,.json,.csv,.tsv,.parquet,.pq" aria-label="File to load" onChange={(event) => { const file = event.currentTarget.files?.[0]; if (file) void take(file); event.currentTarget.value = ""; }} />
          <b>{source ? source.name : "Drop a file here, or choose one"}</b>
          <span class="dim">{source ? `${bytes(source.size)}, ${plural(source.lines ? source.lines.filter((line) => line.trim()).length : source.rows.length, "row")} · drop another one to replace it` : "JSONL, CSV, TSV or Parquet"}</span>
        </label>
        {!source && (
          <dl class="facts drop-hint">
            <dt>JSONL</dt><dd>one entity on each line: <code>{'{"type": "Person", "data": {…}}'}</code> or <code>{'{"edge": "Knows", "from": …, "to": …, "data": {…}}'}</code></dd>
            <dt>CSV, TSV, Parquet</dt><dd>rows of one type; you say next which column is which property</dd>
          </dl>
        )}
        {isReading && <p class="loading"><span class="spinner" /> Reading…</p>}
        {readError && <Problem error={readError} />}
      </Card>
      {source && (
        <>
          <Card title={source.lines ? "First lines" : "Columns"}>
            {preview && <pre class="json" tabIndex={0}>{preview.map((line) => short(line, 300)).join("\n")}</pre>}
            {!source.lines && type && (
              <>
                <Field label="These rows are">
                  <select value={type.name} onChange={(event) => setTypeName(event.currentTarget.value)}>{types.map((each) => <option>{each.name}</option>)}</select>
                </Field>
                <div class="scroll-x" tabIndex={0} role="group" aria-label="Which column becomes which property">
                  <table class="list">
                    <thead><tr><th>Property</th><th>Column</th><th>First values</th></tr></thead>
                    <tbody>
                      {wanted(type).map((each) => {
                        const at = source.columns.indexOf(mapping[each.name]);
                        return (
                          <tr key={each.name}>
                            <td>{each.name} <span class="dim">{each.hint}</span></td>
                            <td><select aria-label={`Column of ${each.name}`} value={mapping[each.name] ?? ""} onChange={(event) => setMapping({ ...mapping, [each.name]: event.currentTarget.value })}><option value="">–</option>{source.columns.map((column) => <option>{column}</option>)}</select></td>
                            <td class="dim">{at >= 0 ? source.rows.slice(0, 20).map((row) => row[at]).filter((value) => value !== null && value !== undefined && value !== "").slice(0, 3).map((value) => short(value, 30)).join(" · ") : ""}</td>
                          </tr>
                        );
                      })}
                    </tbody>
                  </table>
                </div>
                {unused.length > 0 && <p class="dim wrap">Not loaded: {plural(unused.length, "column")} that no property takes ({unused.slice(0, 8).map((name) => short(name, 40)).join(", ")}{unused.length > 8 ? ", …" : ""}).</p>}
                {lacking.length > 0 && <p class="wrap"><Badge kind="warn">choose a column for {lacking.map((each) => each.name).join(", ")}</Badge></p>}
              </>
            )}
          </Card>
          <Card title="Where to">
            <fieldset class="plain-set"><legend class="visually-hidden">Branch</legend>
              <label class="check"><input type="radio" name="where" checked={isNew} onChange={() => setNew(true)} disabled={!may("change_new_branch")} /> a new branch from {branch.value ?? "main"}</label>
              <label class="check"><input type="radio" name="where" checked={!isNew} onChange={() => setNew(false)} disabled={!may("change")} /> directly on {branch.value ?? "main"}</label>
            </fieldset>
            <div class="row-fields">
              {isNew && <Field label="Name of the branch" class="branch-field"><input value={name} onInput={(event) => setName(event.currentTarget.value)} /></Field>}
              <Field label="Rows that are there already">
                <select value={mode} onChange={(event) => setMode(event.currentTarget.value)}><option value="merge">are changed</option><option value="append">are a mistake</option><option value="overwrite">are replaced with all others of the type</option></select>
              </Field>
            </div>
            {error && <Problem error={error} />}
            <div class="actions">
              <Button kind="main" busy={busy} disabled={!into || lacking.length > 0} onClick={() => void load()}>{isMended ? "Load again" : "Load"}</Button>
              {progress && (
                <>
                  <Button onClick={() => stop.current?.cancel()}>Cancel</Button>
                  <progress value={progress.part} max={1} aria-label="How far the load is" />
                  <span class="loading" role="status">{progress.text}…</span>
                </>
              )}
            </div>
          </Card>
        </>
      )}
      {faults && source && (
        <div ref={told} tabIndex={-1} class="outcome">
        <Card title={`${plural(faults.total, "problem")}; nothing was written`}>
          <p>Correct {source.lines ? "the lines" : "the values"} here and load again, or drop a corrected file.</p>
          <ul class="faults">
            {[...byLine(faults.list)].slice(0, 100).map(([line, messages]) => (
              <li key={line}>
                {messages.map((message) => <p><Badge kind="bad">{source.lines ? `line ${line}` : `row ${line}`}</Badge> <span class="fault-text">{message}</span></p>)}
                {line > 0 && source.lines && <textarea rows={2} aria-label={`Line ${line}`} spellcheck={false} value={edits[line] ?? source.lines[line - 1] ?? ""} onInput={(event) => setEdits({ ...edits, [line]: event.currentTarget.value.replaceAll("\n", " ") })} />}
                {line > 0 && !source.lines && (
                  <div class="cells" role="group" aria-label={`Row ${line}`}>
                    {Object.entries(mapping).filter(([, column]) => column).map(([name, column]) => (
                      <Field key={name} label={name}>
                        <input aria-invalid={cells[line]?.[column] === undefined && messages.some((message) => new RegExp(`\\b${name}\\b`).test(message))} value={cells[line]?.[column] ?? plainText(source.rows[line - 1]?.[source.columns.indexOf(column)])} onInput={(event) => setCells({ ...cells, [line]: { ...cells[line], [column]: event.currentTarget.value } })} />
                      </Field>
                    ))}
                  </div>
                )}
              </li>
            ))}
          </ul>
          {faults.total > faults.list.length && <p class="dim">and {number(faults.total - faults.list.length)} more</p>}
          <div class="actions wrap"><Button kind="main" busy={busy} onClick={() => void load()}>Load again</Button></div>
        </Card>
        </div>
      )}
      {done && (
        <div ref={told} tabIndex={-1} class="outcome">
        <Card title="Loaded">
          <p>{plural(done.total_entities, "entity", "entities")} on <b>{done.branch}</b> in commit <code>{brief(done.commit?.graph_commit_id ?? "")}</code>.</p>
          <ul class="plain-list">{[...done.nodes, ...done.edges].filter((each: any) => each.entities_loaded).map((each: any) => <li><TypeName name={each.name} /><span class="number">{number(each.entities_loaded)}</span></li>)}</ul>
          <div class="actions wrap">
            {done.base_branch && done.branch_created && <Link class="button main" to={address("compare", { branch: done.branch, before: done.base_branch, after: done.branch })}>Compare with {done.base_branch}</Link>}
            {done.base_branch && done.branch_created && may("branch_merge") && <Link class="button" to={address("merge", { branch: done.branch, source: done.branch, target: done.base_branch })}>Merge</Link>}
            <Link class="button" to={address("overview", { branch: done.branch })}>Look at it</Link>
          </div>
        </Card>
        </div>
      )}
    </>
  );
}

/** The problems of each line together, so that a line is corrected in one place. */
function byLine(list: Fault[]): Map<number, string[]> {
  const found = new Map<number, string[]>();
  for (const fault of list) found.set(fault.line, [...(found.get(fault.line) ?? []), fault.message]);
  return found;
}

function plainText(value: unknown): string {
  return value === null || value === undefined ? "" : text(value);
}

const STAGES: Record<string, string> = { engine: "Starting", read: "Reading", check: "Checking", stage: "Writing", commit: "Committing" };

function faultsOf(problem: ApiError): { total: number; list: Fault[] } | null {
  const told = problem.body?.library ?? {};
  if (Array.isArray(told.errors)) return { total: told.total ?? told.errors.length, list: told.errors.map(([, line, message]: [string, number, string]) => ({ line, message })) };
  const found = [...String(problem.message).matchAll(/(?:line|record) (\d+): (.*)/g)].map((each) => ({ line: Number(each[1]), message: each[2] }));
  return found.length ? { total: found.length, list: found } : null;
}
