// Values, times and sizes as texts. What a graph holds is only ever shown as text.
import { stringify } from "./json";

export function text(value: unknown): string {
  if (value === null || value === undefined) return "null";
  if (typeof value === "string") return value;
  if (typeof value === "object") return stringify(value);
  return String(value);
}

export function short(value: unknown, most = 120): string {
  const whole = text(value).slice(0, most * 2);
  return whole.length > most ? `${whole.slice(0, most - 1)}…` : whole;
}

export function ago(micros: number): string {
  const seconds = Math.max(0, (Date.now() - micros / 1000) / 1000);
  for (const [size, name] of [
    [86400 * 365, "year"],
    [86400 * 30, "month"],
    [86400, "day"],
    [3600, "hour"],
    [60, "minute"],
  ] as const)
    if (seconds >= size) {
      const count = Math.floor(seconds / size);
      return `${count} ${name}${count === 1 ? "" : "s"} ago`;
    }
  return "just now";
}

export function moment(micros: number): string {
  return new Date(micros / 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}

export function bytes(count: number): string {
  let size = count;
  for (const unit of ["B", "kB", "MB", "GB", "TB"]) {
    if (size < 1000 || unit === "TB") return `${unit === "B" ? size : size.toFixed(size < 10 ? 1 : 0)} ${unit}`;
    size /= 1000;
  }
  return "";
}

export function number(count: number): string {
  return count.toLocaleString("en");
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${number(count)} ${count === 1 ? one : many}`;
}

const KINDS: Record<string, string> = {
  init: "The graph was made",
  load: "Data was loaded",
  mutation: "Data was changed",
  merge: "A branch was merged",
  revert: "A commit was taken back",
  cherry_pick: "A commit was applied",
  rebase: "The branch was brought up to date",
  schema: "The schema was changed",
  schema_apply: "The schema was changed",
  maintenance: "Files and indexes were tended",
};

/** What a commit is called: its message, else what kind of commit it is. */
export function titleOf(commit: { message: string | null; kind: string }): string {
  // Whole ids make a title unreadable; the commit itself shows them.
  return commit.message?.replace(/\b[0-9A-HJKMNP-TV-Z]{26}\b/g, brief) || (KINDS[commit.kind] ?? commit.kind.replaceAll("_", " "));
}

/** A kind of commit as a word. */
export function kindOf(commit: { kind: string }): string {
  return commit.kind.replaceAll("_", "-");
}

/** An id that fits into a line; the whole one is its title. */
export function brief(id: string): string {
  return id.length > 12 ? `${id.slice(0, 4)}…${id.slice(-6)}` : id;
}

export function save(name: string, type: string, content: BlobPart): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function field(value: unknown): string {
  if (value === null || value === undefined) return "";
  const shown = text(value);
  return /[",\n\r]/.test(shown) ? `"${shown.replaceAll('"', '""')}"` : shown;
}

export function csv(columns: string[], rows: Record<string, unknown>[]): string {
  return [columns.map(field).join(","), ...rows.map((row) => columns.map((name) => field(row[name])).join(","))].join("\n");
}
