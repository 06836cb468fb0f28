// Changed entities: types with counts first, then each entity with its properties before and after.
import { useState } from "preact/hooks";
import type { Change } from "../api";
import { text } from "../format";
import { address } from "../route";
import { Badge, Link, TypeName, Value } from "./ui";

const WORDS = { insert: "new", update: "changed", delete: "gone" } as const;

export function ChangeItem({ change }: { change: Change }) {
  const [isOpen, setOpen] = useState(change.op === "update");
  const before = { ...change.before?.properties, ...ends(change.before) };
  const after = { ...change.after?.properties, ...ends(change.after) };
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const shown = change.op === "update" ? names.filter((name) => text(before[name]) !== text(after[name])) : names;
  return (
    <li class={`change ${change.op}`}>
      <div class="change-head">
        <button type="button" class="fold" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)} aria-label={`${isOpen ? "Hide" : "Show"} the properties of ${change.id}`}>
          <span aria-hidden="true">{isOpen ? "▾" : "▸"}</span>
        </button>
        <Badge kind={change.op}>{WORDS[change.op]}</Badge>
        {change.kind === "node" ? <TypeName name={change.type.name} /> : <span>{change.type.name}</span>}
        {change.kind === "node" && change.op !== "delete" ? (
          <Link to={address("explore", { type: change.type.name, id: change.id })}><bdi>{change.id}</bdi></Link>
        ) : (
          <bdi class="change-id" title={change.id}>{title(change)}</bdi>
        )}
      </div>
      {isOpen && (
        <table class="before-after">
          <thead>
            <tr><th>Property</th>{change.op !== "insert" && <th>Before</th>}{change.op !== "delete" && <th>After</th>}</tr>
          </thead>
          <tbody>
            {shown.map((name) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                {change.op !== "insert" && <td class="was"><Compared value={before[name]} other={change.op === "update" ? after[name] : undefined} /></td>}
                {change.op !== "delete" && <td class="is"><Compared value={after[name]} other={change.op === "update" ? before[name] : undefined} /></td>}
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </li>
  );
}

/** A text with the part marked that the other one lacks; every other value as it is. */
function Compared({ value, other }: { value: unknown; other: unknown }) {
  if (typeof value !== "string" || typeof other !== "string" || value.length > 1000 || other.length > 1000) return <Value value={value} />;
  const words = value.split(/(?<=\s)/);
  const others = other.split(/(?<=\s)/);
  let start = 0;
  while (start < words.length && start < others.length && words[start] === others[start]) start++;
  let end = 0;
  while (end < words.length - start && end < others.length - start && words.at(-1 - end) === others.at(-1 - end)) end++;
  const marked = words.slice(start, words.length - end).join("");
  const otherMarked = others.slice(start, others.length - end).join("");
  // Texts that have little in common are not clearer for a mark over most of them; both sides are marked, or none.
  if (marked.length > value.length * 0.75 || otherMarked.length > other.length * 0.75) return <Value value={value} />;
  return <span class="value" dir="auto">{words.slice(0, start).join("")}{marked && <b class="differs">{marked}</b>}{words.slice(words.length - end).join("")}</span>;
}

/** What an entity is called: an edge by its ends, since its id says nothing. */
function title(change: Change): string {
  const joined = (change.after ?? change.before)?.endpoints;
  return joined ? `${joined.from} → ${joined.to}` : change.id;
}

function ends(image: Change["before"]): Record<string, unknown> {
  return image?.endpoints ? { from: image.endpoints.from, to: image.endpoints.to } : {};
}

export function ChangeList({ changes }: { changes: Change[] }) {
  return (
    <ul class="changes">
      {changes.map((change) => (
        <ChangeItem key={`${change.kind} ${change.type.id} ${change.id} ${change.op}`} change={change} />
      ))}
    </ul>
  );
}
