// Data of a view: asked when what it depends on changes, cancelled when the view goes, asked again after a lost connection.
import { signal } from "@preact/signals";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ApiError, ask, cameBack, isOffline, token, type BranchStanding, type Catalog, type Commit, type Permissions } from "./api";
import { base, branch, route } from "./route";

export interface Data<T> {
  data: T | null;
  error: Error | null;
  isLoading: boolean;
  reload: () => void;
}

/** Counts what this tab has changed, so that everything that shows the graph looks again. */
export const changed = signal(0);

/** The text of an input: what the address says, until something is typed; also when one goes back to an earlier address. */
export function useTyped(written: string): readonly [string, (text: string) => void] {
  const [typed, setTyped] = useState(written);
  const known = useRef(written);
  const isNew = known.current !== written;
  // Not in an effect: effects run after the page is painted, and would take away what was typed by then.
  if (isNew) {
    known.current = written;
    setTyped(written);
  }
  return [isNew ? written : typed, setTyped];
}

export function useData<T>(load: (signal: AbortSignal) => Promise<T>, depends: unknown[]): Data<T> {
  const [state, set] = useState<{ data: T | null; error: Error | null; isLoading: boolean }>({
    data: null,
    error: null,
    isLoading: true,
  });
  const [turn, again] = useState(0);
  const failed = useRef(false);
  const back = cameBack.value;
  useEffect(() => {
    if (failed.current) again((n) => n + 1);
  }, [back]);

  useEffect(() => {
    const stop = new AbortController();
    set((was) => ({ ...was, isLoading: true }));
    load(stop.signal).then(
      (data) => {
        failed.current = false;
        if (!stop.signal.aborted) set({ data, error: null, isLoading: false });
      },
      (error) => {
        if (stop.signal.aborted || error.name === "AbortError") return;
        failed.current = error instanceof ApiError && error.status === 0;
        // What was shown stays while the connection is lost, and while another token is asked for.
        const isKept = failed.current || (error instanceof ApiError && error.status === 401);
        set((was) => ({ data: isKept ? was.data : null, error, isLoading: false }));
      },
    );
    return () => stop.abort();
  }, [...depends, turn, changed.value, token.value]);
  return { ...state, reload: useCallback(() => again((n) => n + 1), []) };
}

export const catalog = signal<Catalog | null>(null);
export const branches = signal<BranchStanding[]>([]);
export const tags = signal<Record<string, string>>({});
export const permissions = signal<Permissions | null>(null);
export const graphs = signal<string[]>([]);

export function may(action: string): boolean {
  return permissions.value?.may[action] ?? false;
}

/** What all views of a graph share. */
export function useGraph(): Data<boolean> {
  const graph = route.value.graph;
  // Each branch has a schema of its own; a commit is read with the names that main has now.
  const on = branch.value ?? "main";
  return useData(
    async (signal) => {
      if (!graph) return false;
      const [about, standing, named] = await Promise.all([
        ask<Catalog>("GET", `${base.value}/catalog`, { query: { branch: on }, signal }),
        ask<{ branches: BranchStanding[] }>("GET", `${base.value}/branches/status`, { signal }).catch((problem) => alone(problem, on, signal)),
        ask<{ tags: Record<string, string> }>("GET", `${base.value}/tags`, { signal }).catch(() => ({ tags: {} })),
      ]);
      catalog.value = about;
      branches.value = standing.branches;
      seenHeads.value = headsOf(standing.branches);
      news.value = [];
      tags.value = named.tags;
      return true;
    },
    [graph, on],
  );
}

/** For who may read a branch and not the list of them: this one alone. */
async function alone(problem: unknown, name: string, signal: AbortSignal): Promise<{ branches: BranchStanding[] }> {
  if (!(problem instanceof ApiError) || problem.status !== 403) throw problem;
  const told = await ask<{ library: Commit[] }>("GET", `${base.value}/commits`, { query: { branch: name, limit: 1 }, signal });
  return { branches: told.library.map((head) => ({ name, head, ahead: 0, behind: 0 })) };
}

export function usePermissions(): void {
  const graph = route.value.graph;
  const on = branch.value ?? "main";
  useData(
    async (signal) => {
      if (graph) permissions.value = await ask<Permissions>("GET", `${base.value}/permissions`, { query: { branch: on }, signal });
      return true;
    },
    [graph, on],
  );
}

/** The newest commit of each branch when this tab last looked at everything; null before that. */
const seenHeads = signal<string | null>(null);
/** What others have changed since then: the branches with their newest commits. */
export const news = signal<BranchStanding[]>([]);

function headsOf(all: BranchStanding[]): string {
  return JSON.stringify(all.map((each) => [each.name, each.head.id]));
}

/** Everything that is shown is asked for again. */
export function lookAgain(): void {
  news.value = [];
  changed.value += 1;
}

/** Milliseconds between two looks at what others do, while somebody sees the page. */
const LOOK = 8_000;

/** Look now and then whether somebody else has changed the graph; also finds out that the connection is lost. */
export function useNews(): void {
  const graph = route.value.graph;
  useEffect(() => {
    if (!graph) return;
    seenHeads.value = null;
    news.value = [];
    const timer = setInterval(async () => {
      if (document.hidden || isOffline.value) return;
      const known = seenHeads.value;
      const told = await ask<{ branches: BranchStanding[] }>("GET", `${base.value}/branches/status`).catch(() => null);
      // What this tab has done meanwhile is no news.
      if (!told || known === null || known !== seenHeads.value || route.value.graph !== graph) return;
      const before = new Map<string, string>(JSON.parse(known));
      const fresh = told.branches.filter((each) => before.get(each.name) !== each.head.id);
      if (fresh.length || told.branches.length !== before.size) {
        branches.value = told.branches;
        news.value = fresh;
      }
    }, LOOK);
    return () => clearInterval(timer);
  }, [graph]);
}

export async function loadGraphs(): Promise<void> {
  const told = await ask<{ graphs?: Record<string, string> }>("GET", "/readyz").catch((problem: ApiError) => {
    if (problem.status === 503 && problem.body.graphs) return { graphs: problem.body.graphs as Record<string, string> };
    throw problem;
  });
  graphs.value = Object.entries(told.graphs ?? {})
    .filter(([, health]) => health !== "quarantined")
    .map(([name]) => name)
    .sort();
}

// --- history of one's own queries, in this browser only ---------------------------------------------------------------

export interface Past {
  text: string;
  at: number;
  rows: number;
}

const HISTORY = () => `omnigraph.queries.${route.value.graph}`;

export function pastQueries(): Past[] {
  try {
    return JSON.parse(localStorage.getItem(HISTORY()) ?? "[]");
  } catch {
    return [];
  }
}

export function remember(text: string, rows: number): void {
  const others = pastQueries().filter((past) => past.text !== text);
  const kept = [{ text, rows, at: Date.now() }, ...others].slice(0, 50);
  try {
    localStorage.setItem(HISTORY(), JSON.stringify(kept));
  } catch {
    // A full store forgets; nothing else depends on it.
  }
}
