// JSON whose integers are exact: those beyond 2^53 are read as BigInt and written as the digits they are.

const UNSAFE = /([:[,]\s*|^\s*)(-?\d{16,})(?=\s*(?:[,\]}]|$))/g;
/** Stands before digits that are no text; new for each page, so that no value of a graph can look like it. */
const MARK = `\u0001${Math.random().toString(36).slice(2)}\u0001`;

/** Read JSON. Inside of strings nothing is touched. */
export function parse(text: string): unknown {
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  let hasBig = false;
  const pieces = text.split(/("(?:[^"\\]|\\.)*")/);
  for (let at = 0; at < pieces.length; at += 2)
    pieces[at] = pieces[at].replace(UNSAFE, (whole, lead, digits) => {
      if (Number.isSafeInteger(Number(digits))) return whole;
      hasBig = true;
      return `${lead}${JSON.stringify(MARK + digits)}`;
    });
  if (!hasBig) return JSON.parse(text);
  return JSON.parse(pieces.join(""), (_, value) => (typeof value === "string" && value.startsWith(MARK) ? BigInt(value.slice(MARK.length)) : value));
}

/** Write JSON. */
export function stringify(value: unknown, space?: number): string {
  let hasBig = false;
  const text = JSON.stringify(
    value,
    (_, each) => {
      if (typeof each !== "bigint") return each;
      hasBig = true;
      return MARK + each;
    },
    space,
  );
  return hasBig ? text.replaceAll(new RegExp(`"${JSON.stringify(MARK).slice(1, -1).replaceAll("\\", "\\\\")}(-?\\d+)"`, "g"), "$1") : text;
}

/** A whole number as it was typed: exact, however large; null when the text is none. */
export function integer(text: string): number | bigint | null {
  if (!/^\s*[+-]?\d+\s*$/.test(text)) return null;
  const found = BigInt(text.trim().replace(/^\+/, ""));
  return Number.isSafeInteger(Number(found)) ? Number(found) : found;
}
