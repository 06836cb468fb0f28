// The HTTP API as Studio uses it: requests with the tab's token, errors as one line, and whether the server is reached.
import { signal } from "@preact/signals";

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

export async function request(method: string, path: string, asked: Asked = {}): Promise<Response> {
  const address = new URL(path, location.origin);
  for (const [name, value] of Object.entries(asked.query ?? {}))
    if (value !== null && value !== undefined && value !== "") address.searchParams.set(name, String(value));
  const headers: Record<string, string> = { Accept: asked.accept ?? `${LIBRARY}, application/json`, ...asked.headers };
  if (token.value) headers.Authorization = `Bearer ${token.value}`;
  let content = asked.raw;
  if (asked.body !== undefined) {
    content = JSON.stringify(asked.body);
    headers["Content-Type"] = "application/json";
  } else if (asked.type) headers["Content-Type"] = asked.type;
  let answer: Response;
  try {
    answer = await fetch(address, { method, headers, body: content, signal: asked.signal, cache: "no-store" });
  } catch (problem) {
    if ((problem as Error).name === "AbortError") throw problem;
    lostConnection();
    throw new ApiError("The server can not be reached. Studio goes on when it is back.", 0, {});
  }
  if (answer.ok) {
    needsToken.value = null;
    return answer;
  }
  let told: Record<string, any> = {};
  try {
    told = await answer.json();
  } catch {
    told = {};
  }
  const message = String(told.error ?? `the server answered ${answer.status}`);
  if (answer.status === 401) needsToken.value = token.value ? message : "";
  throw new ApiError(message, answer.status, told);
}

export async function ask<T = any>(method: string, path: string, asked: Asked = {}): Promise<T> {
  const answer = await request(method, path, asked);
  return parse(await answer.text()) as T;
}

const UNSAFE = /([:[,]\s*)(-?\d{16,})(?=\s*[,\]}])/g;

/** JSON with integers beyond 2^53 kept as they are written, as texts; inside of strings nothing is touched. */
export function parse(text: string): unknown {
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  const pieces = text.split(/("(?:[^"\\]|\\.)*")/);
  for (let at = 0; at < pieces.length; at += 2)
    pieces[at] = pieces[at].replace(UNSAFE, (whole, lead, digits) =>
      Number.isSafeInteger(Number(digits)) ? whole : `${lead}"${digits}"`,
    );
  return JSON.parse(pieces.join(""));
}

let waiting: ReturnType<typeof setTimeout> | null = null;

function lostConnection(): void {
  isOffline.value = true;
  if (waiting !== null) return;
  const look = async () => {
    try {
      await fetch("/healthz", { cache: "no-store" });
      waiting = null;
      isOffline.value = false;
      cameBack.value += 1;
    } catch {
      waiting = setTimeout(look, 1500);
    }
  };
  waiting = setTimeout(look, 1500);
}

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
}
