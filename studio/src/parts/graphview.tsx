// The picture of nodes and edges, drawn by sigma with WebGL. It is loaded when it is first shown.
import Graph from "graphology";
import forceAtlas2 from "graphology-layout-forceatlas2";
import noverlap from "graphology-layout-noverlap";
import Sigma from "sigma";
import { createEdgeArrowProgram, drawStraightEdgeLabel } from "sigma/rendering";
import { useEffect, useRef } from "preact/hooks";
import { short } from "../format";

/** Arrows whose heads can be seen at the thickness of these lines. */
const Arrow = createEdgeArrowProgram({ lengthToThicknessRatio: 4.5, widenessToThicknessRatio: 3.2 });

export interface Mark {
  key: string;
  label: string;
  colour: string;
  size?: number;
}
export interface Line {
  key: string;
  from: string;
  to: string;
  label: string;
}
export interface Handle {
  layout: () => void;
  fit: () => void;
  zoom: (by: number) => void;
  picture: () => Promise<Blob | null>;
  frames: () => number;
}
interface Given {
  marks: Mark[];
  lines: Line[];
  chosen?: string | null;
  pinned?: Set<string>;
  pick: (key: string | null) => void;
  expand?: (key: string) => void;
  ready?: (handle: Handle) => void;
}

interface Box {
  left: number;
  right: number;
  top: number;
  bottom: number;
}
interface Kept extends Box {
  key: string;
}
interface Labelled {
  key: string;
  x: number;
  y: number;
  size: number;
  label: string | null;
}

function overlap(one: Box, other: Box): boolean {
  return one.left < other.right && one.right > other.left && one.top < other.bottom && one.bottom > other.top;
}

/** A label that is no wider than there is room. */
function fitting(context: CanvasRenderingContext2D, label: string, most: number): string {
  if (context.measureText(label).width <= most) return label;
  let length = label.length - 1;
  while (length > 1 && context.measureText(`${label.slice(0, length)}…`).width > most) length -= Math.max(1, Math.floor(length / 12));
  return `${label.slice(0, Math.max(1, length))}…`;
}

/** In pictures of at most so many nodes every label keeps off all nodes, and as many are shown as find room. */
const APART = 400;
/** Pictures of more nodes are left as the forces lay them out. */
const PACKED = 600;

/** The nodes that are joined with each other, the largest part first. */
function partsOf(graph: Graph): string[][] {
  const seen = new Set<string>();
  const parts: string[][] = [];
  for (const start of graph.nodes()) {
    if (seen.has(start)) continue;
    const part = [start];
    seen.add(start);
    for (const node of part)
      for (const other of graph.neighbors(node))
        if (!seen.has(other)) {
          seen.add(other);
          part.push(other);
        }
    parts.push(part);
  }
  return parts.sort((one, other) => other.length - one.length);
}

/** Put the separate parts of a picture beside each other, in rows, as the pictures of `omnigraph viz` have them. */
function pack(graph: Graph, parts: string[][], pinned?: Set<string>): void {
  if (pinned?.size) return;
  const boxes = parts.map((part) => {
    const places = part.map((node) => graph.getNodeAttributes(node) as { x: number; y: number });
    const left = Math.min(...places.map((place) => place.x));
    const top = Math.min(...places.map((place) => place.y));
    return { part, left, top, width: Math.max(...places.map((place) => place.x)) - left, height: Math.max(...places.map((place) => place.y)) - top };
  });
  // The room around a part: what its nodes have between them on average.
  const gap = Math.max(...boxes.map((box) => Math.sqrt((box.width * box.height) / box.part.length)), 1) * 0.9;
  const area = boxes.reduce((sum, box) => sum + (box.width + gap) * (box.height + gap), 0);
  const widest = Math.max(...boxes.map((box) => box.width), Math.sqrt(area * 1.5));
  let x = 0;
  let y = 0;
  let row = 0;
  for (const box of boxes) {
    if (x && x + box.width > widest) {
      y += row + gap;
      x = 0;
      row = 0;
    }
    for (const node of box.part) graph.updateNodeAttributes(node, (about) => ({ ...about, x: about.x - box.left + x, y: about.y - box.top + y }));
    x += box.width + gap;
    row = Math.max(row, box.height);
  }
}

export default function GraphView({ marks, lines, chosen, pinned, pick, expand, ready }: Given) {
  const place = useRef<HTMLDivElement>(null);
  const graph = useRef<Graph>(new Graph({ multi: true }));
  const sigma = useRef<Sigma | null>(null);
  const stopLayout = useRef<() => void>(() => {});
  const now = useRef({ chosen, pinned, pick, expand });
  now.current = { chosen, pinned, pick, expand };

  // The colours of the page, or of the notebook cell, around the picture.
  const ink = (name: string) => getComputedStyle(place.current ?? document.documentElement).getPropertyValue(name).trim();

  const layout = (rounds: number) => {
    stopLayout.current();
    const own = graph.current;
    if (own.order < 2) {
      sigma.current?.refresh();
      return;
    }
    let left = rounds;
    let isStopped = false;
    stopLayout.current = () => {
      isStopped = true;
    };
    const settings = { ...forceAtlas2.inferSettings(own), gravity: 0.3, scalingRatio: 8, adjustSizes: own.order < 400, barnesHutOptimize: own.order > 300 };
    const step = () => {
      if (isStopped || !sigma.current) return;
      // So many rounds as fit into a frame: a picture of thousands of nodes can be moved while it is laid out.
      const until = performance.now() + 12;
      do {
        forceAtlas2.assign(own, { iterations: own.order > 2000 ? 1 : 4, settings });
        left -= own.order > 2000 ? 1 : 4;
      } while (performance.now() < until && left > 0);
      if (left > 0) requestAnimationFrame(step);
      else if (own.order < PACKED) {
        const parts = partsOf(own);
        if (parts.length > 1) pack(own, parts, now.current.pinned);
        const box = sigma.current.getBBox();
        const place = sigma.current.getDimensions();
        // The size of a node is in pixels, its place in units of the picture.
        const unit = Math.max((box.x[1] - box.x[0]) / place.width, (box.y[1] - box.y[0]) / place.height) || 1;
        noverlap.assign(own, { maxIterations: 120, settings: { margin: 9 * unit, ratio: 1.2 * unit } });
      }
    };
    requestAnimationFrame(step);
  };

  useEffect(() => {
    const renderer = new Sigma(graph.current, place.current!, {
      defaultEdgeType: "arrow",
      edgeProgramClasses: { arrow: Arrow },
      allowInvalidContainer: true,
      labelFont: "system-ui, sans-serif",
      labelSize: 12,
      labelDensity: 0.8,
      labelRenderedSizeThreshold: 5,
      renderEdgeLabels: true,
      edgeLabelSize: 10,
      zIndex: true,
      stagePadding: 64,
      nodeReducer: (node, about) => ({
        ...about,
        highlighted: node === now.current.chosen,
        forceLabel: node === now.current.chosen,
        zIndex: node === now.current.chosen ? 1 : 0,
      }),
    });
    sigma.current = renderer;
    // Where labels of this frame stand, and what they must not cover.
    let written: Kept[] = [];
    let discs: Kept[] = [];
    let threads: Kept[] = [];
    let placed = new Map<string, number>();
    let isLaidOut = false;
    renderer.on("beforeRender", () => {
      isLaidOut = false;
    });
    const boxesOf = (about: { x: number; y: number; size: number }, width: number, height: number): Box[] => {
      const beside = about.size + 5;
      const box = (left: number, base: number) => ({ left: left - 2, right: left + width + 2, top: base - height, bottom: base + 4 });
      return [
        box(about.x + beside, about.y + height / 3),
        box(about.x - beside - width, about.y + height / 3),
        box(about.x - width / 2, about.y + beside + height),
        box(about.x - width / 2, about.y - beside),
      ];
    };
    const placeFor = (key: string, boxes: Box[], isWanted: boolean): number => {
      const room = renderer.getDimensions();
      const isInside = (box: Box) => box.left >= 1 && box.right <= room.width - 1 && box.top >= 1 && box.bottom <= room.height - 1;
      const isFree = (box: Box, ...all: Kept[][]) => !all.some((kept) => kept.some((other) => other.key !== key && overlap(box, other)));
      const best = boxes.findIndex((box) => isInside(box) && isFree(box, written, discs, threads));
      if (best >= 0) return best;
      const good = boxes.findIndex((box) => isInside(box) && isFree(box, written, discs));
      return good >= 0 || !isWanted ? good : Math.max(0, boxes.findIndex(isInside));
    };
    const where = (key: string): Labelled | null => {
      const about = renderer.getNodeDisplayData(key);
      return about ? { key, label: about.label, ...renderer.framedGraphToViewport(about), size: renderer.scaleSize(about.size) } : null;
    };
    /** What a frame holds before its first label: nodes, the names of edges, and the label of the chosen node, which has its place first. */
    const lookAround = (context: CanvasRenderingContext2D, font: string, height: number) => {
      isLaidOut = true;
      [written, discs, threads, placed] = [[], [], [], new Map()];
      const own = graph.current;
      if (own.order <= APART) discs = own.nodes().map(where).flatMap((about) => (about ? [{ key: about.key, left: about.x - about.size, right: about.x + about.size, top: about.y - about.size, bottom: about.y + about.size }] : []));
      if (renderer.getSetting("renderEdgeLabels"))
        threads = own.mapEdges((key, about, source, target) => {
          const [from, to] = [where(source)!, where(target)!];
          const long = Math.hypot(to.x - from.x, to.y - from.y) || 1;
          const half = String(about.label ?? "").length * 2.6;
          const [x, y] = [(from.x + to.x) / 2, (from.y + to.y) / 2];
          const [wide, tall] = [(half * Math.abs(to.x - from.x)) / long + 4, (half * Math.abs(to.y - from.y)) / long + 4];
          return { key, left: x - wide, right: x + wide, top: y - tall, bottom: y + tall };
        });
      const chosen = now.current.chosen ? where(now.current.chosen) : null;
      if (chosen?.label) {
        context.font = `600 ${font}`;
        const boxes = boxesOf(chosen, context.measureText(fitting(context, chosen.label, Math.max(60, renderer.getDimensions().width / 2 - 24))).width, height);
        const place = placeFor(chosen.key, boxes, true);
        placed.set(chosen.key, place);
        written.push({ ...boxes[place], key: chosen.key });
      }
    };
    // The name of an edge gives way to the labels of nodes.
    renderer.setSetting("defaultDrawEdgeLabel", (context, edge, source, target, settings) => {
      const own = threads.find((thread) => thread.key === edge.key);
      if (!own || !written.some((other) => overlap(own, other))) drawStraightEdgeLabel(context, edge, source, target, settings);
    });
    const colours = () => {
      const [paper, text, accent] = [ink("--card"), ink("--ink"), ink("--accent")];
      renderer.setSetting("labelColor", { color: text });
      renderer.setSetting("edgeLabelColor", { color: ink("--dim") });
      renderer.setSetting("defaultEdgeColor", ink("--thread"));
      // A rim in the colour of the page keeps a label readable where a line runs below it. A label stands where it covers neither
      // another one nor a node: at the right, the left, below or above; one that finds no such place waits until there is room.
      const write = (context: CanvasRenderingContext2D, about: Labelled, font: string, height: number, isWanted: boolean) => {
        if (!about.label) return;
        context.font = font;
        const label = fitting(context, about.label, Math.max(60, renderer.getDimensions().width / 2 - 24));
        const boxes = boxesOf(about, context.measureText(label).width, height);
        const place = placed.get(about.key) ?? placeFor(about.key, boxes, isWanted);
        if (place < 0) return;
        placed.set(about.key, place);
        written.push({ ...boxes[place], key: about.key });
        const [x, y] = [boxes[place].left + 2, boxes[place].bottom - 4];
        context.lineWidth = 4;
        context.lineJoin = "round";
        context.strokeStyle = paper;
        context.strokeText(label, x, y);
        context.fillStyle = text;
        context.fillText(label, x, y);
      };
      renderer.setSetting("defaultDrawNodeLabel", (context, about, settings) => {
        const font = `${settings.labelSize}px ${settings.labelFont}`;
        if (!isLaidOut) lookAround(context, font, settings.labelSize);
        // The chosen node has its label with its ring.
        if ((about as any).key !== now.current.chosen) write(context, about as any, font, settings.labelSize, false);
      });
      renderer.setSetting("defaultDrawNodeHover", (context, about, settings) => {
        // The ring around the chosen node.
        context.beginPath();
        context.arc(about.x, about.y, about.size + 3, 0, Math.PI * 2);
        context.lineWidth = 2;
        context.strokeStyle = accent;
        context.stroke();
        write(context, about as any, `600 ${settings.labelSize}px ${settings.labelFont}`, settings.labelSize, true);
      });
      renderer.refresh();
    };
    colours();
    addEventListener("themechange", colours);
    let dragged: string | null = null;
    let moved = false;
    renderer.on("clickNode", ({ node }) => !moved && now.current.pick(node));
    renderer.on("clickStage", () => now.current.pick(null));
    renderer.on("doubleClickNode", (event) => {
      event.preventSigmaDefault();
      now.current.expand?.(event.node);
    });
    renderer.on("downNode", ({ node }) => {
      dragged = node;
      moved = false;
      if (!renderer.getCustomBBox()) renderer.setCustomBBox(renderer.getBBox());
    });
    renderer.on("moveBody", ({ event }) => {
      if (!dragged) return;
      stopLayout.current();
      const where = renderer.viewportToGraph(event);
      graph.current.mergeNodeAttributes(dragged, where);
      moved = true;
      event.preventSigmaDefault();
      event.original.preventDefault();
    });
    const drop = () => {
      dragged = null;
    };
    renderer.on("upNode", drop);
    renderer.on("upStage", drop);
    let frames = 0;
    renderer.on("afterRender", () => frames++);
    ready?.({
      layout: () => layout(400),
      fit: () => {
        renderer.setCustomBBox(null);
        void renderer.getCamera().animatedReset({ duration: 200 });
        renderer.refresh();
      },
      zoom: (by) => void (by > 0 ? renderer.getCamera().animatedZoom({ duration: 150 }) : renderer.getCamera().animatedUnzoom({ duration: 150 })),
      frames: () => frames,
      picture: async () => {
        renderer.refresh();
        const sheets = Object.entries(renderer.getCanvases()).filter(([name]) => name !== "mouse").map(([, sheet]) => sheet);
        const sheet = document.createElement("canvas");
        sheet.width = sheets[0].width;
        sheet.height = sheets[0].height;
        const pen = sheet.getContext("2d")!;
        pen.fillStyle = ink("--card");
        pen.fillRect(0, 0, sheet.width, sheet.height);
        for (const each of sheets) pen.drawImage(each, 0, 0);
        return new Promise((done) => sheet.toBlob(done, "image/png"));
      },
    });
    return () => {
      removeEventListener("themechange", colours);
      stopLayout.current();
      renderer.kill();
      sigma.current = null;
    };
  }, []);

  useEffect(() => {
    const own = graph.current;
    const wanted = new Set(marks.map((mark) => mark.key));
    for (const key of own.nodes()) if (!wanted.has(key)) own.dropNode(key);
    const near = new Map<string, string>();
    for (const line of lines) {
      near.set(line.to, near.get(line.to) ?? line.from);
      near.set(line.from, near.get(line.from) ?? line.to);
    }
    let isNew = false;
    marks.forEach((mark, number) => {
      const label = short(mark.label, 40);
      if (own.hasNode(mark.key)) {
        own.mergeNodeAttributes(mark.key, { label, color: mark.colour, size: mark.size ?? 8 });
        return;
      }
      isNew = true;
      const beside = near.get(mark.key);
      const origin = beside && own.hasNode(beside) ? own.getNodeAttributes(beside) : { x: 0, y: 0 };
      const angle = number * 2.4;
      const far = 4 + Math.sqrt(number);
      own.addNode(mark.key, { label, color: mark.colour, size: mark.size ?? 8, x: origin.x + Math.cos(angle) * far, y: origin.y + Math.sin(angle) * far });
    });
    const known = new Set(lines.map((line) => line.key));
    for (const key of own.edges()) if (!known.has(key)) own.dropEdge(key);
    for (const line of lines)
      if (!own.hasEdge(line.key) && own.hasNode(line.from) && own.hasNode(line.to))
        own.addEdgeWithKey(line.key, line.from, line.to, { label: line.label, size: lines.length > 2000 ? 1 : 2 });
    sigma.current?.setSetting("renderEdgeLabels", lines.length <= 24);
    sigma.current?.setSetting("labelDensity", marks.length <= APART ? 40 : 0.8);
    // While a large picture is moved, its nodes alone are drawn: the edges are most of the work.
    sigma.current?.setSetting("hideEdgesOnMove", lines.length > 2000);
    sigma.current?.setSetting("hideLabelsOnMove", marks.length > 1000);
    if (isNew) layout(own.order > 2000 ? 60 : 300);
  }, [marks, lines]);

  useEffect(() => {
    for (const key of graph.current.nodes()) graph.current.setNodeAttribute(key, "fixed", pinned?.has(key) ?? false);
    sigma.current?.refresh();
  }, [chosen, pinned]);

  return <div class="graph-canvas" ref={place} role="img" aria-label={`A picture of ${marks.length} nodes and ${lines.length} edges; the list beside it has the same nodes`} />;
}
