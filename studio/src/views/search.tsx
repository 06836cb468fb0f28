// Search by words, by meaning, or both: over chosen types, with the rank that each way gave, and the query it stands for.
import { ask, type Rows, type TypeInfo } from "../api";
import { useData, useTyped } from "../data";
import { short } from "../format";
import { Badge, Button, Card, Empty, Field, Link, Problem, Shown, TypeName } from "../parts/ui";
import { address, adjust, base, route, target, visit } from "../route";
import { nodeTypes, textProperties } from "./explore";

type Way = "words" | "meaning" | "both";
const MOST = 20;

interface Hit {
  type: string;
  id: string;
  text: string;
  words: number | null;
  meaning: number | null;
  score: number;
  wordsRank?: number;
  meaningRank?: number;
}

function vectorOf(type: TypeInfo): string | undefined {
  return type.properties.find((each) => each.kind === "Vector")?.name;
}

function textOf(type: TypeInfo): string | undefined {
  const texts = textProperties(type);
  const indexed = type.indexes.flat().find((name) => texts.includes(name));
  return indexed ?? texts.find((name) => !type.key?.includes(name)) ?? texts[0];
}

/** The query that a search of one type stands for; null when the type has nothing to search in this way. */
export function searchQuery(type: TypeInfo, way: Way, filter: string): string | null {
  const text = textOf(type);
  const vector = vectorOf(type);
  if (!text || (way !== "words" && !vector)) return null;
  const near = `nearest($n.${vector}, $words)`;
  const rank = `bm25($n.${text}, $words)`;
  const order = way === "words" ? `${rank} desc` : way === "meaning" ? near : `rrf(${near}, ${rank}) desc`;
  const lines = [`$n: ${type.name}`, ...(way === "words" ? [`search($n.${text}, $words)`] : []), ...(filter.trim() ? [filter.trim()] : [])];
  const shown = [`$n.@id as id`, `$n.${text} as text`, `${rank} as words`, ...(vector && way !== "words" ? [`${near} as distance`] : [])];
  return `query search($words: String) {\n  match {\n    ${lines.join("\n    ")}\n  }\n  return { ${shown.join(", ")} }\n  order { ${order} }\n  limit ${MOST}\n}`;
}

function Marked({ text, words }: { text: string; words: string }) {
  const wanted = words.toLowerCase().split(/\s+/).filter((word) => word.length > 1).map((word) => word.slice(0, Math.max(3, word.length - 2)));
  const parts = short(text, 320).split(/([^\p{L}\p{N}]+)/u);
  return <bdi>{parts.map((part) => (wanted.some((word) => part.toLowerCase().includes(word)) ? <mark>{part}</mark> : part))}</bdi>;
}

export default function Search() {
  const params = route.value.params;
  const words = params.get("words") ?? "";
  const way = (params.get("way") ?? "words") as Way;
  const filter = params.get("filter") ?? "";
  const [given, setGiven] = useTyped(words);
  const [typed, setTyped] = useTyped(filter);
  const all = nodeTypes().filter((type) => textOf(type));
  const chosen = (params.get("types") ?? "").split(",").filter(Boolean);
  const searched = all.filter((type) => (chosen.length ? chosen.includes(type.name) : true) && searchQuery(type, way, filter));
  const queries = searched.map((type) => [type, searchQuery(type, way, filter)!] as const);
  const hasVectors = all.some(vectorOf);
  const found = useData(
    async (signal) => {
      if (!words.trim()) return null;
      const lists = await Promise.all(
        queries.map(async ([type, query]) => {
          const told = await ask<Rows>("POST", `${base.value}/query`, { body: { query, params: { words }, ...target.value }, signal });
          const hits: Hit[] = told.rows.map((row, place) => ({
            type: type.name,
            id: String(row.id),
            text: row.text === null ? "" : String(row.text),
            words: row.words as number | null,
            meaning: (row.distance as number | undefined) ?? null,
            score: 1 / (60 + place),
          }));
          const ranked = (value: (hit: Hit) => number | null, down: boolean) =>
            hits.filter((hit) => value(hit) !== null).sort((one, other) => (value(one)! - value(other)!) * (down ? -1 : 1));
          ranked((hit) => (hit.words ? hit.words : null), true).forEach((hit, place) => (hit.wordsRank = place + 1));
          ranked((hit) => hit.meaning, false).forEach((hit, place) => (hit.meaningRank = place + 1));
          return hits;
        }),
      );
      const everything = lists.flat();
      return way === "words" ? everything.sort((one, other) => (other.words ?? 0) - (one.words ?? 0)) : everything.sort((one, other) => other.score - one.score);
    },
    [base.value, JSON.stringify(target.value), words, way, filter, chosen.join(), queries.length],
  );
  return (
    <>
      <h1>Search</h1>
      <Card>
        <form
          role="search"
          onSubmit={(event) => {
            event.preventDefault();
            visit({ words: given.trim() || null, filter: typed.trim() || null });
          }}
        >
          <div class="row-fields">
            <label class="grow"><span class="visually-hidden">Words</span><input class="wide" type="search" placeholder="Words to look for" value={given} onInput={(event) => setGiven(event.currentTarget.value)} /></label>
            <Button kind="main" type="submit">Search</Button>
          </div>
          <div class="row-fields">
            <fieldset class="plain-set"><legend class="visually-hidden">How</legend>
              {([["words", "Words"], ["meaning", "Meaning"], ["both", "Both"]] as const).map(([name, title]) => (
                <label class="check"><input type="radio" name="way" checked={way === name} disabled={name !== "words" && !hasVectors} onChange={() => adjust({ way: name === "words" ? null : name })} /> {title}</label>
              ))}
            </fieldset>
            <fieldset class="plain-set"><legend class="visually-hidden">Types</legend>
              {all.map((type) => (
                <label class={`check ${searchQuery(type, way, filter) ? "" : "dim"}`} title={searchQuery(type, way, filter) ? undefined : `${type.name} has no Vector property to search by meaning`}><input type="checkbox" disabled={!searchQuery(type, way, filter)} checked={!!searchQuery(type, way, filter) && (!chosen.length || chosen.includes(type.name))} onChange={() => {
                  const now = chosen.length ? chosen : all.map((each) => each.name);
                  const next = now.includes(type.name) ? now.filter((name) => name !== type.name) : [...now, type.name];
                  adjust({ types: next.length === all.length || !next.length ? null : next.join(",") });
                }} /> <TypeName name={type.name} /></label>
              ))}
            </fieldset>
          </div>
          <details open={!!filter}><summary>Filter</summary>
            <Field label="Condition" hint={<>A condition on the node <code>$n</code>, such as <code>$n.age &gt; 30</code></>}>
              <input value={typed} onInput={(event) => setTyped(event.currentTarget.value)} spellcheck={false} />
            </Field>
          </details>
        </form>
        {!hasVectors && <p class="dim">Search by meaning needs a Vector property; this schema has none.</p>}
      </Card>
      {!all.length && <Problem error="No type of this graph has a text to search in." />}
      {words && (
        <Card title={<>Found <span class="dim">for “<bdi>{short(words, 60)}</bdi>”</span></>} actions={queries.length === 1 ? <Link to={address("query", { text: queries[0][1] })}>Show as a query</Link> : queries.length ? <span class="actions">Show as a query: {queries.map(([type, query]) => <Link to={address("query", { text: query })} aria-label={`Show as a query: ${type.name}`}>{type.name}</Link>)}</span> : undefined}>
          <Shown of={found as any}>
            {(hits: Hit[] | null) =>
              hits?.length ? (
                <ol class="hits">
                  {hits.slice(0, 60).map((hit) => (
                    <li key={`${hit.type} ${hit.id}`}>
                      <div class="hit-head"><TypeName name={hit.type} /><Link to={address("explore", { type: hit.type, id: hit.id })}><bdi>{short(hit.id, 80)}</bdi></Link>
                        {hit.wordsRank && <Badge kind="good">words #{hit.wordsRank}</Badge>}
                        {hit.meaningRank && <Badge>meaning #{hit.meaningRank}</Badge>}
                      </div>
                      {hit.text && hit.text !== hit.id && <p class="hit-text"><Marked text={hit.text} words={way === "meaning" ? "" : words} /></p>}
                    </li>
                  ))}
                </ol>
              ) : (
                <Empty title="Nothing was found">{hasVectors && way === "words" ? "Try fewer words, another type, or search by meaning." : "Try fewer words or another type."}</Empty>
              )
            }
          </Shown>
        </Card>
      )}
    </>
  );
}
