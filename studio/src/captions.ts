// What the nodes of a type are called by in pictures; chosen by a person, kept in this browser for each graph.
import { computed, signal } from "@preact/signals";
import { route } from "./route";

const PLACE = () => `omnigraph.captions.${route.value.graph}`;
const turn = signal(0);

/** The chosen property of each type that has one. */
export const captions = computed<Record<string, string>>(() => {
  turn.value;
  try {
    return JSON.parse(localStorage.getItem(PLACE()) ?? "{}");
  } catch {
    return {};
  }
});

/** Choose a property, or with null the label that the server gives. */
export function setCaption(type: string, property: string | null): void {
  const { [type]: _, ...others } = captions.value;
  localStorage.setItem(PLACE(), JSON.stringify(property ? { ...others, [type]: property } : others));
  turn.value += 1;
}
