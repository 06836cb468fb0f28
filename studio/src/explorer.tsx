// The graph view as a notebook widget (anywidget): nodes and edges come from Python, a click asks Python for the neighbours.
import { render as draw } from "preact";
import { useState } from "preact/hooks";
import GraphView, { type Line, type Mark } from "./parts/graphview";

interface Shown extends Mark {
  detail: string;
}
interface Model {
  get: (name: string) => unknown;
  on: (event: string, call: () => void) => void;
  off: (event: string, call: () => void) => void;
  send: (message: unknown) => void;
}
interface Place {
  model: Model;
  el: HTMLElement;
}

function Explorer({ marks, lines, note, expand }: { marks: Shown[]; lines: Line[]; note: string; expand: (key: string) => void }) {
  const [chosen, choose] = useState<string | null>(null);
  const detail = marks.find((mark) => mark.key === chosen)?.detail ?? "";
  const pick = (key: string | null) => {
    choose(key);
    if (key) expand(key);
  };
  return (
    <div>
      <GraphView marks={marks} lines={lines} chosen={chosen} pick={pick} expand={expand} />
      <div style={{ font: "12px system-ui, sans-serif", whiteSpace: "pre-wrap", padding: "4px 2px", opacity: 0.8 }}>{detail || note}</div>
    </div>
  );
}

function render({ model, el }: Place) {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches || document.body.dataset.jpThemeLight === "false";
  const colours = dark
    ? { "--ink": "#e6e6e6", "--dim": "#a0a6ad", "--thread": "#7d848c", "--accent": "#7fb2e5", "--card": "#1e1e1e" }
    : { "--ink": "#222222", "--dim": "#5f666d", "--thread": "#8a8f98", "--accent": "#2a6db0", "--card": "#ffffff" };
  const frame = document.createElement("div");
  for (const [name, value] of Object.entries(colours)) frame.style.setProperty(name, value);
  el.appendChild(frame);
  const sheet = document.createElement("style");
  sheet.textContent = ".graph-canvas{height:420px;border:1px solid rgba(128,128,128,.35);border-radius:6px;position:relative}";
  el.appendChild(sheet);
  const show = () =>
    draw(
      <Explorer
        marks={model.get("marks") as Shown[]}
        lines={model.get("lines") as Line[]}
        note={model.get("note") as string}
        expand={(key) => model.send({ expand: key })}
      />,
      frame,
    );
  show();
  const names = ["change:marks", "change:lines", "change:note"];
  for (const name of names) model.on(name, show);
  return () => {
    for (const name of names) model.off(name, show);
    draw(null, frame);
  };
}

export default { render };
