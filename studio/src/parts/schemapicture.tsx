// The schema as a picture: types as boxes, edges as arrows with their names, laid out in layers so that labels stay apart.
import dagre from "@dagrejs/dagre";
import { useMemo } from "preact/hooks";
import { catalog } from "../data";
import { colourOf } from "../colours";
import { number } from "../format";
import { address, open } from "../route";

const LETTER = 8.2;
/** The height of a box, and of a loop below it: an edge from a type to itself. */
const BOX = 46;
const LOOP = 30;
/** How much smaller a picture may become; letters are hard to read below. */
const SMALLEST = 0.75;

export function SchemaPicture({ counts }: { counts: Record<string, number> }) {
  const types = catalog.value?.types ?? [];
  // On a narrow screen the types stand below each other.
  const isNarrow = innerWidth < 600;
  const drawn = useMemo(() => {
    const graph = new dagre.graphlib.Graph({ multigraph: true });
    graph.setGraph({ rankdir: isNarrow ? "TB" : "LR", nodesep: isNarrow ? 14 : 30, ranksep: isNarrow ? 40 : 70, edgesep: isNarrow ? 8 : 18, marginx: 14, marginy: 14 });
    graph.setDefaultEdgeLabel(() => ({}));
    const loops = (name: string) => types.filter((each) => each.kind === "edge" && each.from === name && each.to === name);
    for (const type of types.filter((each) => each.kind === "node"))
      graph.setNode(type.name, { width: Math.max(104, type.name.length * LETTER + 44), height: BOX + loops(type.name).length * LOOP, loops: loops(type.name).map((each) => each.name) });
    for (const edge of types.filter((each) => each.kind === "edge"))
      if (edge.from !== edge.to && graph.hasNode(edge.from!) && graph.hasNode(edge.to!))
        graph.setEdge(edge.from!, edge.to!, { width: edge.name.length * LETTER + 14, height: 20, labelpos: "c" }, edge.name);
    dagre.layout(graph);
    return graph;
  }, [types]);
  const size = drawn.graph() as { width?: number; height?: number };
  const width = Math.max(200, size.width ?? 0);
  const height = Math.max(80, size.height ?? 0);
  // A little smaller where that is enough to see all of it; else it is moved sideways.
  const scale = Math.min(1, Math.max(SMALLEST, (innerWidth - 56) / width));
  return (
    <div class="schema-picture" tabIndex={0} role="group" aria-label="The schema as a picture">
      <svg viewBox={`0 0 ${width} ${height}`} width={width * scale} height={height * scale} role="group" aria-label={`${types.length} types and how they connect`}>
        <defs>
          <marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto-start-reverse">
            <path d="M0 0L10 5L0 10z" class="arrow" />
          </marker>
        </defs>
        {drawn.edges().map((edge) => {
          const about = drawn.edge(edge) as { points: { x: number; y: number }[]; x: number; y: number };
          const points = about.points.map((point) => ({ ...point }));
          // A box with loops below it is lower than the room it has: lines begin and end at the box itself.
          const rim = isNarrow ? 0 : 9;
          for (const [point, name] of [[points[0], edge.v], [points[points.length - 1], edge.w]] as const) {
            const box = drawn.node(name) as { y: number; height: number };
            const top = box.y - box.height / 2;
            point.y = Math.min(Math.max(point.y, top + rim), top + BOX - rim);
          }
          const middle = points.slice(1, -1);
          let path = `M${points[0].x} ${points[0].y}`;
          if (middle.length) {
            for (let place = 0; place < middle.length - 1; place++) {
              const next = { x: (middle[place].x + middle[place + 1].x) / 2, y: (middle[place].y + middle[place + 1].y) / 2 };
              path += ` Q${middle[place].x} ${middle[place].y} ${next.x} ${next.y}`;
            }
            const last = middle[middle.length - 1];
            path += ` Q${last.x} ${last.y} ${points[points.length - 1].x} ${points[points.length - 1].y}`;
          } else path += ` L${points[points.length - 1].x} ${points[points.length - 1].y}`;
          return <path key={edge.name} d={path} class="thread" marker-end="url(#arrow)" />;
        })}
        {drawn.edges().map((edge) => {
          const about = drawn.edge(edge) as { x: number; y: number };
          return (
            <text key={edge.name} x={about.x} y={about.y + 4} class="edge-name" text-anchor="middle">
              {edge.name}
            </text>
          );
        })}
        {drawn.nodes().map((name) => {
          const whole = drawn.node(name) as { x: number; y: number; width: number; height: number; loops: string[] };
          const about = { ...whole, y: whole.y - whole.height / 2 + BOX / 2, height: BOX };
          const where = address("explore", { type: name });
          const low = about.y + BOX / 2;
          return (
            <>
            {whole.loops.map((loop, place) => {
              const deep = low + LOOP * (place + 0.72);
              const reach = Math.min(about.width / 2 - 8, loop.length * 3.7 + 12 + place * 6);
              return (
                <g key={loop}>
                  <path class="thread" marker-end="url(#arrow)" d={`M${about.x - reach} ${low}V${deep - 8}Q${about.x - reach} ${deep} ${about.x - reach + 8} ${deep}H${about.x + reach - 8}Q${about.x + reach} ${deep} ${about.x + reach} ${deep - 8}V${low}`} />
                  <text x={about.x} y={deep + 4} class="edge-name" text-anchor="middle">{loop}</text>
                </g>
              );
            })}
            <a key={name} href={where} class="box" onClick={(event) => { event.preventDefault(); open(where); }}>
              <rect x={about.x - about.width / 2} y={about.y - about.height / 2} width={about.width} height={about.height} rx="8" />
              <circle cx={about.x - about.width / 2 + 15} cy={about.y - 7} r="5" fill={colourOf(name)} />
              <text x={about.x - about.width / 2 + 27} y={about.y - 3}>{name}</text>
              <text x={about.x - about.width / 2 + 27} y={about.y + 14} class="count">{number(counts[name] ?? 0)}</text>
            </a>
            </>
          );
        })}
      </svg>
    </div>
  );
}
