// Look around without a query: find a node, open it, add its neighbours; as a picture, a table and JSON of the same thing.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ask, type Neighbourhood, type Rows, type Seen, type TypeInfo } from "../api";
import { catalog, useData, useTyped } from "../data";
import { colourOf } from "../colours";
import { csv, number, plural, save, short, text } from "../format";
import { captions, setCaption } from "../captions";
import { stringify } from "../json";
import type { Handle } from "../parts/graphview";
import { GraphView } from "../parts/lazy";
import { DataTable } from "../parts/table";
import { Button, Card, Empty, Link, Loading, Problem, SaveButton, say, Tabs, TypeName, useAction, Value } from "../parts/ui";
import { adjust, address, base, route, target, visit } from "../route";

const STEP = 15;
const FOUND = 40;
const MANY = 3000;
/** How many nodes of a type are drawn at first when somebody starts with the type. */
const SEVERAL = 12;

type Key = string;
const keyOf = (type: string, id: string): Key => `${type}\u0000${id}`;

interface Scene {
  nodes: Map<Key, Seen>;
  edges: Map<Key, Seen & { source: Key; end: Key }>;
}

/** A text as a literal of the query language. */
export function literal(value: string): string {
  return JSON.stringify(value);
}

export function nodeTypes(): TypeInfo[] {
  return (catalog.value?.types ?? []).filter((type) => type.kind === "node");
}

export function textProperties(type: TypeInfo): string[] {
  return type.properties.filter((each) => each.kind === "String" && !each.is_list && !each.enum).map((each) => each.name);
}

/** A query that gives the nodes of a type: those whose key or texts fit, or the first ones. */
function findQuery(type: TypeInfo, words: string, limit: number): string {
  const texts = textProperties(type);
  const condition = words && texts.length ? `\n    ${texts.map((name) => `lower($n.${name}) contains lower($words)`).join(" or ")}` : "";
  return `query find(${words && texts.length ? "$words: String" : ""}) {\n  match {\n    $n: ${type.name}${condition}\n  }\n  return { $n.@id as id${!type.key && texts.length ? `, substring($n.${texts[0]}, 0, 100) as label` : ""} }\n  limit ${limit}\n}`;
}

function seen(type: TypeInfo, row: Record<string, unknown>): Seen {
  const id = String(row.id);
  return { type: type.name, id, label: row.label ? String(row.label) : id, properties: {} };
}

export default function Explore() {
  const params = route.value.params;
  const wantedType = params.get("type");
  const wantedId = params.get("id");
  const types = nodeTypes();
  const [scene, setScene] = useState<Scene>({ nodes: new Map(), edges: new Map() });
  const [chosen, setChosen] = useState<Key | null>(null);
  const [pinned, setPinned] = useState<Set<Key>>(new Set());
  const [tab, setTab] = useState<"graph" | "table" | "json">("graph");
  const [words, setWords] = useTyped(params.get("words") ?? "");
  const handle = useRef<Handle | null>(null);
  const [agreed, setAgreed] = useState(false);
  // The finder keeps its type while nodes of other types are opened.
  const findType = params.get("of") ?? wantedType;
  const type = types.find((each) => each.name === findType) ?? types[0];
  // How many edges of each group of a node were asked for; those that came by way of other nodes do not count.
  const asked = useRef(new Map<string, number>());

  const where = JSON.stringify(target.value);
  useEffect(() => {
    setScene({ nodes: new Map(), edges: new Map() });
    setChosen(null);
    asked.current.clear();
  }, [where]);

  const found = useData(
    async (signal) => {
      if (!type) return [];
      const words = params.get("words") ?? "";
      const told = await ask<Rows>("POST", `${base.value}/query`, {
        body: { query: findQuery(type, words, FOUND), params: words && textProperties(type).length ? { words } : {}, ...target.value },
        signal,
      });
      return told.rows.map((row) => seen(type, row));
    },
    [base.value, where, type?.name, params.get("words")],
  );

  const [around, isAdding, aroundError] = useAction(async (of: Seen, edge?: string, direction?: string) => {
    const group = (name: string, way: string) => `${keyOf(of.type, of.id)}\u0000${name} ${way}`;
    const skip = edge && direction ? (asked.current.get(group(edge, direction)) ?? 0) : 0;
    const told = await ask<Neighbourhood>("GET", `${base.value}/neighbours`, {
      query: { type: of.type, id: of.id, edge, direction, limit: STEP, skip, ...target.value },
    });
    for (const each of told.groups) asked.current.set(group(each.edge, each.direction), skip + each.given);
    setScene((was) => withNeighbours(was, told));
    setChosen(keyOf(told.node.type, told.node.id));
  });

  useEffect(() => {
    if (!wantedType || !wantedId) return;
    if (scene.nodes.has(keyOf(wantedType, wantedId))) setChosen(keyOf(wantedType, wantedId));
    else void around({ type: wantedType, id: wantedId, label: wantedId, properties: {} });
  }, [wantedType, wantedId, where, scene.nodes.size === 0]);

  const [several] = useAction(async () => {
    const all = await Promise.all(
      (found.data ?? []).slice(0, SEVERAL).map((node) => ask<Neighbourhood>("GET", `${base.value}/neighbours`, { query: { type: node.type, id: node.id, limit: 4, ...target.value } })),
    );
    for (const told of all)
      for (const each of told.groups) asked.current.set(`${keyOf(told.node.type, told.node.id)}\u0000${each.edge} ${each.direction}`, each.given);
    setScene((was) => all.reduce(withNeighbours, was));
  });

  const marks = useMemo(
    () => [...scene.nodes].map(([key, node]) => ({ key, label: captionOf(node), colour: colourOf(node.type), size: pinned.has(key) ? 11 : 8 })),
    [scene, pinned, catalog.value, captions.value],
  );
  const lines = useMemo(() => [...scene.edges].map(([key, edge]) => ({ key, from: edge.source, to: edge.end, label: edge.type })), [scene]);
  const chosenNode = chosen ? scene.nodes.get(chosen) : undefined;
  const isLarge = marks.length > MANY && !agreed;

  const choose = (key: Key | null) => {
    setChosen(key);
    const node = key ? scene.nodes.get(key) : undefined;
    if (node) visit({ of: type.name, type: node.type, id: node.id });
  };
  /** A node of the list: the address brings one that is not there yet; of one that is, the neighbours are added. */
  const openFound = (node: Seen) => {
    if (scene.nodes.has(keyOf(node.type, node.id))) void around(node);
    visit({ of: type.name, type: node.type, id: node.id });
  };
  const hide = (key: Key) => {
    setScene((was) => {
      const nodes = new Map(was.nodes);
      nodes.delete(key);
      return { nodes, edges: new Map([...was.edges].filter(([, edge]) => edge.source !== key && edge.end !== key)) };
    });
    if (chosen === key) {
      setChosen(null);
      adjust({ id: null });
    }
  };
  const rows = [...scene.nodes.values()];
  const data = { nodes: rows, edges: [...scene.edges.values()].map(({ source, end, ...edge }) => edge) };

  if (!types.length) return <><h1>Explore</h1><Empty title="This graph has no node types yet"><Link to={address("schema")}>Write its schema</Link></Empty></>;
  return (
    <>
      <h1>Explore</h1>
      <div class="explore">
        <Card class="finder" title="Find">
          <form
            class="find-form"
            role="search"
            onSubmit={(event) => {
              event.preventDefault();
              visit({ words: words.trim() || null });
            }}
          >
            <label class="visually-hidden" for="find-type">Type</label>
            <select id="find-type" value={type.name} onChange={(event) => adjust({ of: event.currentTarget.value })}>
              {types.map((each) => <option>{each.name}</option>)}
            </select>
            <label class="visually-hidden" for="find-words">Key or words</label>
            <input id="find-words" type="search" placeholder="Key or words" value={words} onInput={(event) => setWords(event.currentTarget.value)} />
            <Button type="submit">Find</Button>
          </form>
          {found.error && <Problem error={found.error} again={found.reload} />}
          {found.data && !found.data.length && <Empty title={params.get("words") ? `No ${type.name} fits` : `There is no ${type.name} yet`} />}
          <ul class="found" aria-label="Found nodes">
            {(found.data ?? []).map((node) => (
              <li key={node.id}>
                <button type="button" aria-pressed={chosen === keyOf(node.type, node.id)} onClick={() => openFound(node)}>
                  <TypeName name={node.type} />
                  <bdi class="found-label">{short(node.label, 60)}</bdi>
                </button>
              </li>
            ))}
          </ul>
          {found.data && found.data.length >= FOUND && <p class="dim">The first {FOUND}. Look for a key or words to see others.</p>}
        </Card>
        <Card
          class="stage"
          title={<Tabs label="How it is shown" of={[["graph", "Graph"], ["table", "Table"], ["json", "JSON"]]} now={tab} pick={setTab} />}
          actions={
            tab === "graph" ? (
              <>
                <Button kind="quiet" title="Zoom in" aria-label="Zoom in" disabled={!marks.length} onClick={() => handle.current?.zoom(1)}>+</Button>
                <Button kind="quiet" title="Zoom out" aria-label="Zoom out" disabled={!marks.length} onClick={() => handle.current?.zoom(-1)}>−</Button>
                <Button kind="quiet" disabled={!marks.length} onClick={() => handle.current?.fit()}>Fit</Button>
                <Button kind="quiet" disabled={!marks.length} onClick={() => handle.current?.layout()}>Lay out again</Button>
                <SaveButton kind="PNG" disabled={!marks.length} save={async () => { const picture = await handle.current?.picture(); if (picture) save("graph.png", "image/png", picture); }} />
                <Button kind="quiet" disabled={!marks.length} onClick={() => { setScene({ nodes: new Map(), edges: new Map() }); setChosen(null); asked.current.clear(); adjust({ id: null }); }}>Clear</Button>
              </>
            ) : tab === "table" ? (
              <SaveButton kind="CSV" disabled={!rows.length} save={() => save("nodes.csv", "text/csv", tableCsv(rows))} />
            ) : (
              <SaveButton kind="JSON" disabled={!rows.length} save={() => save("graph.json", "application/json", stringify(data, 2))} />
            )
          }
        >
          {aroundError && <Problem error={aroundError} />}
          {!marks.length ? (
            isAdding ? <Loading /> : (
              <Empty title="Nothing is shown yet">
                <p>{found.data && !found.data.length ? "The list beside this is empty: choose another type, or look for other words." : "Choose a node in the list, or start with several. A double click on a node in the picture adds its neighbours."}</p>
                {found.data && found.data.length > 0 && <Button onClick={() => void several()}>{found.data.length === 1 ? "Draw it and how it connects" : `Draw ${found.data.length > SEVERAL ? `the first ${SEVERAL}` : `these ${found.data.length}`} and how they connect`}</Button>}
              </Empty>
            )
          ) : tab === "graph" ? (
            isLarge ? (
              <Empty title={`${number(marks.length)} nodes are many for a picture`}><Button onClick={() => setAgreed(true)}>Draw them anyway</Button></Empty>
            ) : (
              <>
                <GraphView marks={marks} lines={lines} chosen={chosen} pinned={pinned} pick={choose} expand={(key: Key) => { const node = scene.nodes.get(key); if (node) void around(node); }} ready={(given: Handle) => { handle.current = given; (window as any).studioPicture = given; }} />
                <Legend rows={rows} edges={lines.length} />
              </>
            )
          ) : tab === "table" ? (
            <DataTable
              label="Nodes"
              rows={rows}
              columns={[
                { name: "type", value: (node) => node.type, show: (node) => <TypeName name={node.type} />, width: 130 },
                { name: "id", value: (node) => node.id },
                ...[...new Set(rows.flatMap((node) => Object.keys(node.properties)))].map((name) => ({ name, value: (node: Seen) => (name in node.properties ? node.properties[name] : "") })),
              ]}
              pick={(node) => choose(keyOf(node.type, node.id))}
            />
          ) : (
            <pre class="json" tabIndex={0}>{stringify(data, 2).slice(0, 400_000)}</pre>
          )}
        </Card>
        {chosenNode && (
          <NodePanel
            key={chosen}
            node={chosenNode}
            busy={isAdding}
            more={(edge, direction) => void around(chosenNode, edge, direction)}
            hide={() => hide(chosen!)}
            pin={() => setPinned((was) => { const next = new Set(was); if (!next.delete(chosen!)) next.add(chosen!); return next; })}
            isPinned={pinned.has(chosen!)}
            scene={scene}
            choose={choose}
          />
        )}
      </div>
    </>
  );
}

/** What a node is called: the property that was chosen for its type, else its own label. */
function captionOf(node: Seen): string {
  const name = captions.value[node.type];
  const value = name ? node.properties[name] : undefined;
  return value === null || value === undefined ? node.label : text(value);
}

/** The types of a picture with their colours; beside each the property that its nodes are called by. */
function Legend({ rows, edges }: { rows: Seen[]; edges: number }) {
  return (
    <ul class="legend" aria-label="Types in the picture">
      {[...new Set(rows.map((node) => node.type))].map((name) => {
        const known = nodeTypes().find((each) => each.name === name);
        const choices = (known?.properties ?? []).filter((each) => !/Vector|Blob/.test(each.kind) && !known?.key?.includes(each.name));
        return (
          <li key={name}>
            <TypeName name={name} />
            {choices.length > 0 && (
              <select class="caption" aria-label={`What nodes of ${name} are called by`} title="What they are called by" value={captions.value[name] ?? ""} onChange={(event) => setCaption(name, event.currentTarget.value || null)}>
                <option value="">{known?.key?.join(", ") ?? "name"}</option>
                {choices.map((each) => <option value={each.name}>{each.name}</option>)}
              </select>
            )}
          </li>
        );
      })}
      <li class="dim">{plural(rows.length, "node")}, {plural(edges, "edge")}</li>
    </ul>
  );
}

function tableCsv(rows: Seen[]): string {
  const names = [...new Set(rows.flatMap((node) => Object.keys(node.properties)))];
  return csv(["type", "id", ...names], rows.map((node) => ({ ...node.properties, type: node.type, id: node.id })));
}

function withNeighbours(was: Scene, told: Neighbourhood): Scene {
  const nodes = new Map(was.nodes);
  const edges = new Map(was.edges);
  for (const node of [told.node, ...told.nodes]) nodes.set(keyOf(node.type, node.id), node);
  const declared = new Map((catalog.value?.types ?? []).filter((each) => each.kind === "edge").map((each) => [each.name, each]));
  for (const edge of told.edges) {
    const about = declared.get(edge.type);
    if (!about) continue;
    const source = keyOf(about.from!, edge.from!);
    const end = keyOf(about.to!, edge.to!);
    if (nodes.has(source) && nodes.has(end)) edges.set(keyOf(edge.type, edge.id), { ...edge, source, end });
  }
  return { nodes, edges };
}

function NodePanel({
  node,
  busy,
  more,
  hide,
  pin,
  isPinned,
  scene,
  choose,
}: {
  node: Seen;
  busy: boolean;
  more: (edge: string, direction: string) => void;
  hide: () => void;
  pin: () => void;
  isPinned: boolean;
  scene: Scene;
  choose: (key: Key) => void;
}) {
  const whole = useData(
    (signal) =>
      ask<{ entity: Record<string, unknown> | null }>("GET", `${base.value}/entity`, { query: { entity: "node", type: node.type, id: node.id, ...target.value }, signal }),
    [node.type, node.id],
  );
  const groups = useData(
    (signal) => ask<Neighbourhood>("GET", `${base.value}/neighbours`, { query: { type: node.type, id: node.id, limit: 0, ...target.value }, signal }),
    [node.type, node.id],
  );
  const key = keyOf(node.type, node.id);
  const shownEdges = (edge: string, direction: string) =>
    [...scene.edges.values()].filter((each) => each.type === edge && (direction === "out" ? each.source : each.end) === key);
  const type = nodeTypes().find((each) => each.name === node.type);
  const asQuery = type
    ? `query node() {\n  match {\n    $n: ${node.type}${type.key?.length === 1 ? ` { ${type.key[0]}: ${literal(node.id)} }` : `\n    $n.@id = ${literal(node.id)}`}\n  }\n  return { $n.@id as id, $n.* }\n}`
    : "";
  return (
    <Card class="aside node-panel" title={<TypeName name={node.type} />} actions={<span class="actions"><Button kind="quiet" aria-pressed={isPinned} onClick={pin}>{isPinned ? "Unpin" : "Pin"}</Button><Button kind="quiet" onClick={hide}>Hide</Button></span>}>
      <h3 class="node-title"><bdi>{short(captionOf(node), 120)}</bdi></h3>
      {captionOf(node) !== node.label && <p class="dim"><bdi>{short(node.label, 100)}</bdi></p>}
      <h4>Neighbours</h4>
      {groups.error && <Problem error={groups.error} />}
      <ul class="groups">
        {(groups.data?.groups ?? []).filter((group) => group.total > 0).map((group) => {
          const shown = shownEdges(group.edge, group.direction);
          const name = `${group.edge} ${group.direction === "out" ? "to" : "from"} ${group.type}`;
          return (
            <li key={name}>
              <div class="group-head">
                <span><span aria-hidden="true">{group.direction === "out" ? "→ " : "← "}</span>{group.edge} <span class="dim">{group.direction === "out" ? "to" : "from"}</span> <TypeName name={group.type} /></span>
                <span class="dim">{number(shown.length)} of {number(group.total)}</span>
              </div>
              <ul class="ends">
                {shown.slice(0, 8).map((edge) => {
                  const other = scene.nodes.get(group.direction === "out" ? edge.end : edge.source);
                  return other && <li><button type="button" class="inline-button" onClick={() => choose(keyOf(other.type, other.id))}><bdi>{short(captionOf(other), 50)}</bdi></button></li>;
                })}
              </ul>
              {shown.length < group.total && (
                <Button kind="quiet" busy={busy} aria-label={`${shown.length ? "More" : "Show"} ${name}`} onClick={() => more(group.edge, group.direction)}>
                  {shown.length ? `${Math.min(STEP, group.total - shown.length)} more` : `Show ${Math.min(STEP, group.total)}`}
                </Button>
              )}
            </li>
          );
        })}
      </ul>
      {groups.data && !groups.data.groups.some((group) => group.total) && <p class="dim">It has no edges.</p>}
      <h4>Properties</h4>
      {whole.error ? (
        <Problem error={whole.error} />
      ) : (
        <table class="properties">
          <tbody>
            {Object.entries(whole.data?.entity ?? node.properties).map(([name, value]) => (
              <tr key={name}><th scope="row">{name}</th><td><Value value={value} most={Array.isArray(value) ? 60 : 300} /></td></tr>
            ))}
          </tbody>
        </table>
      )}
      <div class="actions wrap">
        <Link class="button quiet" to={address("query", { text: asQuery })}>Show as a query</Link>
        <Button kind="quiet" onClick={() => void navigator.clipboard?.writeText(location.href).then(() => say("The address is copied"))}>Copy the address</Button>
      </div>
    </Card>
  );
}
