// One colour per type, the same in every view and in the pictures that `omnigraph viz` draws.
import { catalog } from "./data";

const COLOURS = [
  "#4477aa",
  "#ee6677",
  "#228833",
  "#ccbb44",
  "#66ccee",
  "#aa3377",
  "#dd8833",
  "#7766bb",
  "#44aa99",
  "#999933",
];

export function colourOf(type: string): string {
  const names = (catalog.value?.types ?? []).filter((known) => known.kind === "node").map((known) => known.name);
  const place = names.indexOf(type);
  return place < 0 ? "#8a8f98" : COLOURS[place % COLOURS.length];
}

export function isNode(type: string): boolean {
  return (catalog.value?.types ?? []).some((known) => known.kind === "node" && known.name === type);
}
