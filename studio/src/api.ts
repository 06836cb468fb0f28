// The HTTP API as Studio uses it: requests with the tab's token, errors as one line, and whether the server is reached.
import { signal } from "@preact/signals";
import { parse, stringify } from "./json";
import type { Step } from "./parts/steps";

const LIBRARY = "application/vnd.omnigraph+json";
const TOKEN = "omnigraph.token";

/** The token of this tab; kept in the tab's own storage, never in an address. */
export const token = signal<string | null>(sessionStorage.getItem(TOKEN));
/** Whether the server asks for a token that we do not have. */
export const needsToken = signal<string | null>(null);
/** Whether the last request did not reach the server. */
export const isOffline = signal(false);
/** Counts how often the connection came back; what failed meanwhile is asked again. */
export const cameBack = signal(0);

export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly body: Record<string, any>,
  ) {
    super(message);
  }
}

export function setToken(given: string | null): void {
  token.value = given;
  if (given === null) sessionStorage.removeItem(TOKEN);
  else sessionStorage.setItem(TOKEN, given);
}

export interface Asked {
  body?: unknown;
  raw?: BodyInit;
  type?: string;
  query?: Record<string, string | number | null | undefined>;
  signal?: AbortSignal;
  headers?: Record<string, string>;
  accept?: string;
}

/** A key under which the server does a request once, however often it is sent. */
export function newKey(): string {
  return crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`;
}

/** Milliseconds after which a request without an answer makes Studio look whether the server is still there. */
const PATIENCE = 5_000;
/** Milliseconds that the server has to say that it lives; it is asked twice before it is taken for gone. */
const PULSE = 4_000;
/** Requests by POST that only read. */
const READING = /\/(?:query|compare|lint|explain|schema\/plan)$/;

export async function request(method: string, path: string, asked: Asked = {}): Promise<Response> {
  const address = new URL(path, location.origin);
  for (const [name, value] of Object.entries(asked.query ?? {}))
    if (value !== null && value !== undefined && value !== "") address.searchParams.set(name, String(value));
  const headers: Record<string, string> = { Accept: asked.accept ?? `${LIBRARY}, application/json`, ...asked.headers };
  if (token.value) headers.Authorization = `Bearer ${token.value}`;
  let content = asked.raw;
  if (asked.body !== undefined) {
    content = stringify(asked.body);
    headers["Content-Type"] = "application/json";
  } else if (asked.type) headers["Content-Type"] = asked.type;
  const body = asked.body as { dry_run?: boolean; options?: { dry_run?: boolean } } | undefined;
  const isReading = method === "GET" || READING.test(path) || !!body?.dry_run || !!body?.options?.dry_run;
  // Whatever changes a graph has a key: when the answer is lost, it is sent again and done once.
  if (!isReading && path.startsWith("/graphs/")) headers["Idempotency-Key"] ??= newKey();
  const isRepeatable = isReading || "Idempotency-Key" in headers;
  const answer = await reach(address, { method, headers, body: content, cache: "no-store" }, isRepeatable, asked.signal);
  if (answer.ok) {
    needsToken.value = null;
    return answer;
  }
  let told: Record<string, any> = {};
  try {
    told = parse(await answer.text()) as Record<string, any>;
  } catch {
    told = {};
  }
  const message = String(told.error ?? `the server answered ${answer.status}`);
  if (answer.status === 401) needsToken.value = token.value ? message : "";
  throw new ApiError(message, answer.status, told);
}

/**
 * Send a request. A connection that breaks, or that is silent while the server does not answer anything else either, is lost:
 * a request that may be repeated (it reads, or it has an idempotency key) is sent again when the server is back.
 */
async function reach(address: URL, init: RequestInit, isRepeatable: boolean, outer?: AbortSignal): Promise<Response> {
  for (;;) {
    const stop = new AbortController();
    const forward = () => stop.abort(outer?.reason);
    if (outer?.aborted) forward();
    outer?.addEventListener("abort", forward);
    let isDone = false;
    const watch = setInterval(async () => {
      if ((await isAlive()) || isDone || (await isAlive()) || isDone) return;
      void lostConnection();
      stop.abort();
    }, PATIENCE);
    try {
      return await fetch(address, { ...init, signal: stop.signal });
    } catch {
      if (outer?.aborted) throw new DOMException("cancelled", "AbortError");
      void lostConnection();
      if (!isRepeatable) throw new ApiError(LOST, 0, {});
    } finally {
      isDone = true;
      clearInterval(watch);
      outer?.removeEventListener("abort", forward);
    }
    await untilBack(outer);
  }
}

const LOST = "The connection was lost before the server answered. When it is back, look whether this was done, then try again.";

async function isAlive(): Promise<boolean> {
  try {
    await fetch("/healthz", { cache: "no-store", signal: AbortSignal.timeout(PULSE) });
    return true;
  } catch {
    return false;
  }
}

export async function ask<T = any>(method: string, path: string, asked: Asked = {}): Promise<T> {
  const answer = await request(method, path, asked);
  return parse(await answer.text()) as T;
}

let isLooking = false;
let waiters: (() => void)[] = [];

/** The server is not there: say so, and look for it until it is. */
async function lostConnection(): Promise<void> {
  isOffline.value = true;
  if (isLooking) return;
  isLooking = true;
  do await new Promise((go) => setTimeout(go, 1_500));
  while (!(await isAlive()));
  isLooking = false;
  isOffline.value = false;
  cameBack.value += 1;
  const all = waiters;
  waiters = [];
  for (const go of all) go();
}

/** Wait until the server is back, or until the caller gives up. */
export function untilBack(outer?: AbortSignal): Promise<void> {
  return new Promise((go, fail) => {
    if (!isOffline.value) return go();
    waiters.push(go);
    outer?.addEventListener("abort", () => fail(new DOMException("cancelled", "AbortError")));
  });
}

addEventListener("offline", () => void lostConnection());

/** Exchange the one-time key of `omnigraph studio` for its token. The key is taken out of the address first. */
export async function takeKey(): Promise<void> {
  const found = /^#key=([\w-]+)$/.exec(location.hash);
  if (!found) return;
  history.replaceState(null, "", location.pathname + location.search);
  try {
    const told = await ask<{ token: string }>("POST", "/studio/session", { body: { key: found[1] } });
    setToken(told.token);
  } catch (problem) {
    if (!token.value) needsToken.value = (problem as Error).message;
  }
}

// --- answers ---------------------------------------------------------------------------------------------------------

export interface Commit {
  id: string;
  branch: string;
  parent: string | null;
  merged_parent: string | null;
  actor: string | null;
  created_at: number;
  manifest_version: number;
  kind: string;
  message: string | null;
}
export interface Property {
  name: string;
  type: string;
  kind: string;
  nullable: boolean;
  is_list: boolean;
  enum: string[] | null;
  description: string | null;
}
export interface TypeInfo {
  name: string;
  kind: "node" | "edge";
  key: string[] | null;
  indexes: string[][];
  description: string | null;
  properties: Property[];
  from?: string;
  to?: string;
}
export interface Catalog {
  types: TypeInfo[];
  functions: { name: string; usage: string; help: string }[];
  words: string[];
}
export interface BranchStanding {
  name: string;
  head: Commit;
  ahead: number;
  behind: number;
}
export interface Seen {
  type: string;
  id: string;
  label: string;
  properties: Record<string, unknown>;
  from?: string;
  to?: string;
}
export interface Neighbourhood {
  graph_commit_id: string;
  node: Seen;
  groups: { edge: string; direction: "out" | "in"; type: string; total: number; given: number }[];
  nodes: Seen[];
  edges: Seen[];
}
export interface Image {
  properties: Record<string, unknown>;
  endpoints?: { from: string; to: string };
}
export interface Change {
  kind: "node" | "edge";
  type: { id: string; name: string };
  id: string;
  op: "insert" | "update" | "delete";
  before?: Image;
  after?: Image;
}
export interface Compared {
  before: string;
  after: string;
  /** What differs between the schemas, on the first page. */
  schema?: Step[];
  counts?: { kind: string; type: string; inserts: number; updates: number; deletes: number }[];
  changes: Change[];
  next_page_token?: string;
}
export interface Conflict {
  kind: string;
  entity_kind: "node" | "edge";
  type_name: string;
  type_key: string;
  entity_id: string | null;
  message: string;
  base?: Record<string, unknown>;
  ours?: Record<string, unknown>;
  theirs?: Record<string, unknown>;
}
export interface MergeAnswer {
  outcome: string;
  commit: Commit | null;
  conflicts: Conflict[];
  stats: Record<string, any>;
  decided: Record<string, any>[];
}
export interface Rows {
  query_name: string;
  row_count: number;
  columns: string[];
  rows: Record<string, unknown>[];
  graph_commit_id: string;
}
export interface Permissions {
  actor_id: string | null;
  read_only: boolean;
  branch: string;
  may: Record<string, boolean>;
  why_not: Record<string, string>;
}
