// What can be told of a query text without the server: which variables it binds, to which types.
import { catalog } from "./data";

/** An edge as it is written in a traversal. */
export function small(edge: string): string {
  return edge.slice(0, 1).toLowerCase() + edge.slice(1);
}

/** The types of the variables that a text binds, as far as it tells them. */
export function variableTypes(text: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const bound of text.matchAll(/\$([a-z_]\w*)\s*:\s*([A-Z]\w*)/g)) found.set(bound[1], bound[2]);
  for (const step of text.matchAll(/\$([a-z_]\w*)\s+(?:\$([a-z_]\w*)\s*:\s*)?<?([a-z]\w*)>?\s*(?:\{[^}]*\})?\s*\$([a-z_]\w*)/g)) {
    const edge = catalog.value?.types.find((type) => type.kind === "edge" && small(type.name) === step[3]);
    if (!edge) continue;
    if (!found.has(step[1])) found.set(step[1], edge.from!);
    if (!found.has(step[4])) found.set(step[4], edge.to!);
    if (step[2]) found.set(step[2], edge.name);
  }
  return found;
}

export interface Step {
  from: string;
  edge: string;
  to: string;
}

/** The traversals of a text: which variables are joined by which edge type. */
export function steps(text: string): Step[] {
  const found: Step[] = [];
  for (const step of text.matchAll(/\$([a-z_]\w*)\s+(?:\$[a-z_]\w*\s*:\s*)?<?([a-z]\w*)>?\s*(?:\{[^}]*\})?\s*\$([a-z_]\w*)/g)) {
    const edge = catalog.value?.types.find((type) => type.kind === "edge" && small(type.name) === step[2]);
    if (edge) found.push({ from: step[1], edge: edge.name, to: step[3] });
  }
  return found;
}
