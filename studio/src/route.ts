// Where one is: the graph, the view, and what the view shows, all of it in the address.
import { computed, signal } from "@preact/signals";

export interface Route {
  graph: string | null;
  view: string;
  params: URLSearchParams;
}

function read(): Route {
  const parts = location.pathname.split("/").map(decoded);
  return {
    graph: parts[1] === "g" && parts[2] ? parts[2] : null,
    view: (parts[1] === "g" && parts[3]) || "overview",
    params: new URLSearchParams(location.search),
  };
}

/** A part of an address; one that nobody can have encoded so is taken as it stands. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export const route = signal<Route>(read());
addEventListener("popstate", () => (route.value = read()));

export type Params = Record<string, string | null | undefined>;

/** The address of a view of this graph. Branch or snapshot go along unless `params` names another one. */
export function address(view: string, params: Params = {}): string {
  const now = route.value;
  const kept: Params = {};
  if (!("branch" in params) && !("at" in params))
    for (const name of ["branch", "at"]) kept[name] = now.params.get(name);
  return addressOf(now.graph ?? "", view, { ...kept, ...params });
}

export function addressOf(graph: string, view: string, params: Params): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) if (value) query.set(name, value);
  const text = query.toString();
  return `/g/${encodeURIComponent(graph)}/${view}${text ? `?${text}` : ""}`;
}

export function open(where: string, replace = false): void {
  if (replace) history.replaceState(null, "", where);
  else {
    history.pushState(null, "", where);
    scrollTo(0, 0);
  }
  route.value = read();
}

export function go(view: string, params: Params = {}): void {
  open(address(view, params));
}

/** Change some parameters of this view's address, without a step in the browser's history. */
export function adjust(params: Params): void {
  open(adjusted(params), true);
}

/** Look at something else in this view: a step in the browser's history, so that one can go back to what was there before. */
export function visit(params: Params): void {
  const where = adjusted(params);
  if (where === location.pathname + location.search) return;
  history.pushState(null, "", where);
  route.value = read();
}

function adjusted(params: Params): string {
  const now = route.value;
  return addressOf(now.graph ?? "", now.view, { ...Object.fromEntries(now.params), ...params });
}

/** The branch that is looked at; null while a commit is. */
export const branch = computed(() => (route.value.params.get("at") ? null : (route.value.params.get("branch") ?? "main")));
/** The commit that is looked at instead of a branch. */
export const at = computed(() => route.value.params.get("at"));
/** Whether a text is the id of a commit. */
export function isCommit(text: string): boolean {
  return /^[0-9A-HJKMNP-TV-Z]{26}$/.test(text);
}
/** What is read, as the API names it. */
export const target = computed<{ branch?: string; snapshot?: string }>(() =>
  at.value ? { snapshot: at.value } : { branch: branch.value ?? "main" },
);
/** The path of this graph in the API. */
export const base = computed(() => `/graphs/${encodeURIComponent(route.value.graph ?? "")}`);
