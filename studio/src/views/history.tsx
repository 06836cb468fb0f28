// The commits as a drawn graph with branches and merges; one commit with what it changed, and what can be done with it.
import { useEffect, useMemo, useState } from "preact/hooks";
import { ask, type Change, type Commit, type MergeAnswer } from "../api";
import { branches, changed, may, tags, useData } from "../data";
import { ago, brief, kindOf, moment, number, plural, short, titleOf } from "../format";
import { ChangeList } from "../parts/changes";
import { Badge, Button, Card, Dialog, Empty, Field, Link, Problem, say, Shown, useAction } from "../parts/ui";
import { TimeDialog } from "../parts/past";
import { address, adjust, base, branch, go, route, visit } from "../route";

const LANE = 16;
const LINE = 44;
const SHOWN = 200;
/** Branches that are drawn at once, besides main. */
const MOST_BRANCHES = 15;
/** Names of branches or tags beside a commit; the others are counted. */
const NAMES = 2;
const LANE_COLOURS = ["#4477aa", "#aa3377", "#228833", "#dd8833", "#7766bb", "#44aa99", "#ee6677", "#999933"];

interface Placed {
  commit: Commit;
  lane: number;
  lanes: (string | null)[];
}

/** Commits, newest first, each in a lane; a lane waits for the parent of its last commit. */
function placed(commits: Commit[]): Placed[] {
  const lanes: (string | null)[] = [];
  return commits.map((commit) => {
    let lane = lanes.indexOf(commit.id);
    if (lane < 0) {
      lane = lanes.indexOf(null);
      if (lane < 0) lane = lanes.length;
    }
    lanes.forEach((waits, place) => {
      if (waits === commit.id) lanes[place] = null;
    });
    lanes[lane] = commit.parent;
    if (commit.merged_parent && !lanes.includes(commit.merged_parent)) {
      const free = lanes.indexOf(null);
      if (free < 0) lanes.push(commit.merged_parent);
      else lanes[free] = commit.merged_parent;
    }
    return { commit, lane, lanes: [...lanes] };
  });
}

function Drawing({ rows }: { rows: Placed[] }) {
  const place = new Map(rows.map((row, index) => [row.commit.id, { x: row.lane * LANE + 12, y: index * LINE + LINE / 2, lane: row.lane }]));
  const width = Math.max(...rows.map((row) => Math.max(row.lanes.length, row.lane + 1)), 1) * LANE + 12;
  return (
    <svg class="commit-graph" width={width} height={rows.length * LINE} aria-hidden="true">
      {rows.flatMap(({ commit }) =>
        [commit.parent, commit.merged_parent].filter(Boolean).map((parent) => {
          const from = place.get(commit.id)!;
          const to = place.get(parent!) ?? { x: from.x, y: rows.length * LINE, lane: from.lane };
          const colour = LANE_COLOURS[Math.max(from.lane, to.lane) % LANE_COLOURS.length];
          // Along the outer lane, then over in the last half line, so that lines do not run through other commits.
          const d =
            from.x === to.x
              ? `M${from.x} ${from.y}V${to.y}`
              : to.x > from.x
                ? `M${from.x} ${from.y}C${from.x} ${from.y + LINE * 0.7} ${to.x} ${from.y + LINE * 0.3} ${to.x} ${from.y + LINE}V${to.y}`
                : `M${from.x} ${from.y}V${to.y - LINE}C${from.x} ${to.y - LINE * 0.3} ${to.x} ${to.y - LINE * 0.7} ${to.x} ${to.y}`;
          return <path key={`${commit.id}${parent}`} d={d} stroke={colour} fill="none" stroke-width="2" />;
        }),
      )}
      {rows.map(({ commit, lane }) => {
        const where = place.get(commit.id)!;
        return <circle key={commit.id} cx={where.x} cy={where.y} r={commit.merged_parent ? 6 : 5} fill={LANE_COLOURS[lane % LANE_COLOURS.length]} class="commit-dot" />;
      })}
    </svg>
  );
}

export default function History() {
  const [limit, setLimit] = useState(SHOWN);
  const [isTime, setTime] = useState(false);
  const chosen = route.value.params.get("commit");
  const names = branches.value.map((each) => each.name).join("\n");
  const all = useData(
    async (signal) => {
      const on = branch.value;
      const wanted = on && on !== "main" ? [on, "main"] : drawnBranches();
      const lists = await Promise.all(
        wanted.map((name) => ask<{ library: Commit[] }>("GET", `${base.value}/commits`, { query: { branch: name, limit }, signal }).catch(() => ({ library: [] as Commit[] }))),
      );
      const found = new Map<string, Commit>();
      for (const list of lists) for (const commit of list.library) found.set(commit.id, commit);
      return [...found.values()].sort((one, other) => other.created_at - one.created_at || (one.id < other.id ? 1 : -1));
    },
    [base.value, branch.value, names, limit],
  );
  return (
    <>
      <header class="view-head">
        <h1>History</h1>
        <Button onClick={() => setTime(true)}>Look at an earlier time</Button>
      </header>
      {isTime && <TimeDialog close={() => setTime(false)} />}
      <div class="split">
        <Card class="grow">
          <Shown of={all}>
            {(commits) => <Log commits={commits} chosen={chosen} more={commits.length >= limit ? () => setLimit(limit + SHOWN) : undefined} />}
          </Shown>
        </Card>
        {chosen && <CommitCard key={chosen} id={chosen} />}
      </div>
    </>
  );
}

/** The branches that are drawn beside main: first those that have something of their own, then those that changed last. */
function drawnBranches(): string[] {
  const others = branches.value.filter((each) => each.name !== "main");
  others.sort((one, other) => Number(other.ahead > 0) - Number(one.ahead > 0) || other.head.created_at - one.head.created_at);
  return ["main", ...others.slice(0, MOST_BRANCHES).map((each) => each.name)];
}

function Log({ commits, chosen, more }: { commits: Commit[]; chosen: string | null; more?: () => void }) {
  const rows = useMemo(() => placed(commits), [commits]);
  const heads = new Map<string, string[]>();
  for (const each of branches.value) heads.set(each.head.id, [...(heads.get(each.head.id) ?? []), each.name]);
  const named = new Map<string, string[]>();
  for (const [name, id] of Object.entries(tags.value)) named.set(id, [...(named.get(id) ?? []), name]);
  return (
    <>
      <div class="log">
        <Drawing rows={rows} />
        <ol class="log-lines" aria-label="Commits, newest first">
          {rows.map(({ commit }) => (
            <li key={commit.id} class={commit.id === chosen ? "chosen" : ""}>
              <button type="button" onClick={() => visit({ commit: commit.id })} aria-pressed={commit.id === chosen} title={commit.id}>
                <span class="log-title">
                  <span class="log-words">{short(titleOf(commit), 200)}</span>
                  <Names kind="head" names={heads.get(commit.id) ?? []} />
                  <Names kind="tag" names={named.get(commit.id) ?? []} />
                </span>
                <span class="dim">{kindOf(commit)} · {commit.actor ?? "nobody named"} · <time title={moment(commit.created_at)}>{ago(commit.created_at)}</time></span>
              </button>
            </li>
          ))}
        </ol>
      </div>
      {more && <Button kind="quiet" onClick={more}>Older commits</Button>}
      {branch.value === "main" && branches.value.length > MOST_BRANCHES + 1 && <p class="dim more">{MOST_BRANCHES} of {number(branches.value.length - 1)} branches are drawn beside main. Choose a branch above to see its commits.</p>}
    </>
  );
}

/** The branches or tags of a commit: the first ones by name, how many others. */
function Names({ names, kind }: { names: string[]; kind: string }) {
  const others = names.slice(NAMES);
  return (
    <>
      {names.slice(0, NAMES).map((name) => <Badge kind={kind}>{short(name, 40)}</Badge>)}
      {others.length > 0 && <span class={`badge ${kind}`} title={others.join(", ")}>+{others.length}</span>}
    </>
  );
}

function CommitCard({ id }: { id: string }) {
  const about = useData(
    (signal) => ask<{ library: Commit }>("GET", `${base.value}/commits/${id}`, { signal }).then((told) => told.library),
    [base.value, id],
  );
  const [changes, setChanges] = useState<Change[]>([]);
  const first = useData(
    (signal) => ask<{ changes: Change[]; next_page_token?: string }>("GET", `${base.value}/commits/${id}/changes`, { query: { limit: 50 }, signal }),
    [base.value, id],
  );
  const [token, setToken] = useState<string | null | undefined>(undefined);
  const next = token === undefined ? first.data?.next_page_token : token;
  const [more, isMore, moreError] = useAction(async () => {
    const told = await ask<{ changes: Change[]; next_page_token?: string }>("GET", `${base.value}/commits/${id}/changes`, { query: { limit: 50, page_token: next } });
    setChanges([...changes, ...told.changes]);
    setToken(told.next_page_token ?? null);
  });
  useEffect(() => {
    // Where there is no room beside the list, the commit stands below it: bring it to where it is seen.
    if (about.data && innerWidth <= 1100) document.querySelector(".split > .aside")?.scrollIntoView({ block: "start" });
  }, [about.data === null]);
  const [doing, setDoing] = useState<"revert" | "cherry-pick" | "tag" | null>(null);
  return (
    <Card class="aside" title="Commit" actions={<button type="button" class="icon" aria-label="Close the commit" onClick={() => adjust({ commit: null })}>×</button>}>
      <Shown of={about}>
        {(commit) => (
          <>
            <dl class="facts">
              <dt>Id</dt><dd><code>{commit.id}</code></dd>
              {commit.message && (<><dt>Message</dt><dd>{commit.message}</dd></>)}
              <dt>Kind</dt><dd>{kindOf(commit)}</dd>
              <dt>By</dt><dd>{commit.actor ?? "nobody named"}</dd>
              <dt>When</dt><dd>{moment(commit.created_at)} ({ago(commit.created_at)})</dd>
              <dt>On</dt><dd>{commit.branch}</dd>
              {commit.parent && (<><dt>Parent</dt><dd><Link to={address("history", { commit: commit.parent })}>{brief(commit.parent)}</Link></dd></>)}
              {commit.merged_parent && (<><dt>Merged</dt><dd><Link to={address("history", { commit: commit.merged_parent })}>{brief(commit.merged_parent)}</Link></dd></>)}
            </dl>
            <div class="actions wrap">
              <Link class="button" to={address("overview", { at: commit.id, branch: null })}>Look at the graph then</Link>
              <Link class="button" to={address("compare", { branch: branch.value, before: commit.id, after: branch.value ?? "main" })}>Compare with now</Link>
              {may("change") && commit.parent && <Button onClick={() => setDoing("revert")}>Revert</Button>}
              {may("change") && commit.parent && <Button onClick={() => setDoing("cherry-pick")}>Cherry-pick</Button>}
              {may("change") && <Button onClick={() => setDoing("tag")}>Tag</Button>}
            </div>
            {doing === "tag" && <TagDialog id={id} close={() => setDoing(null)} />}
            {doing && doing !== "tag" && <PickDialog verb={doing} id={id} close={() => setDoing(null)} />}
          </>
        )}
      </Shown>
      {!about.error && <h3>Changes</h3>}
      {about.error ? null : first.error ? (
        <p class="dim">{first.error.message}</p>
      ) : (
        <Shown of={first}>
          {(page) => {
            const list = [...page.changes, ...changes];
            return list.length ? (
              <>
                <p class="dim">{plural(list.length, "change")}{next ? " and more" : ""}</p>
                <ChangeList changes={list} />
                {moreError && <Problem error={moreError} />}
                {next && <Button kind="quiet" busy={isMore} onClick={() => void more()}>More changes</Button>}
              </>
            ) : (
              <Empty title="It changed no entity" />
            );
          }}
        </Shown>
      )}
    </Card>
  );
}

function TagDialog({ id, close }: { id: string; close: () => void }) {
  const [name, setName] = useState("");
  const [run, busy, error] = useAction(async () => {
    await ask("POST", `${base.value}/tags`, { body: { name: name.trim(), commit: id } });
    say(`Tagged as ${name.trim()}`);
    changed.value += 1;
    close();
  });
  return (
    <Dialog title="Tag this commit" close={close}>
      <form class="form" onSubmit={(event) => { event.preventDefault(); void run(); }}>
        <Field label="Name" hint="A tagged commit can be looked at for ever; cleanup keeps it.">
          <input value={name} onInput={(event) => setName(event.currentTarget.value)} autofocus required />
        </Field>
        {error && <Problem error={error} />}
        <div class="form-end"><Button kind="quiet" onClick={close}>Cancel</Button><Button kind="main" type="submit" busy={busy} disabled={!name.trim()}>Tag</Button></div>
      </form>
    </Dialog>
  );
}

export function PickDialog({ verb, id, close, on: start }: { verb: "revert" | "cherry-pick"; id: string; close: () => void; on?: string }) {
  const [on, setOn] = useState(start ?? branch.value ?? "main");
  const dry = useData(
    (signal) => ask<{ library: MergeAnswer }>("POST", `${base.value}/${verb}`, { body: { commit: id, branch: on, options: { dry_run: true } }, signal }).then((told) => told.library),
    [on],
  );
  const [run, busy, error] = useAction(async () => {
    const told = await ask<{ library: MergeAnswer }>("POST", `${base.value}/${verb}`, { body: { commit: id, branch: on } });
    say(told.library.commit ? `Done in commit ${brief(told.library.commit.id)}` : "There was nothing to do");
    changed.value += 1;
    close();
    if (told.library.commit) go("history", { branch: on, commit: told.library.commit.id });
  });
  return (
    <Dialog title={verb === "revert" ? "Take this commit back" : "Apply this commit elsewhere"} close={close}>
      <div class="form">
        <Field label="On branch">
          <select value={on} onChange={(event) => setOn(event.currentTarget.value)}>{branches.value.map((each) => <option>{each.name}</option>)}</select>
        </Field>
        <Shown of={dry}>
          {(plan) =>
            plan.conflicts.length ? (
              <div class="problem"><span>{plural(plan.conflicts.length, "conflict")}: {plan.conflicts[0].message}</span></div>
            ) : (
              <p>{plural(plan.stats.inserted ?? 0, "entity comes", "entities come")} back, {plural(plan.stats.updated ?? 0, "is", "are")} changed, {plural(plan.stats.deleted ?? 0, "goes", "go")}. It is one new commit; nothing is lost.</p>
            )
          }
        </Shown>
        {error && <Problem error={error} />}
        <div class="form-end"><Button kind="quiet" onClick={close}>Cancel</Button><Button kind="main" busy={busy} disabled={!dry.data || dry.data.conflicts.length > 0} onClick={() => void run()}>{verb === "revert" ? "Revert" : "Cherry-pick"}</Button></div>
      </div>
    </Dialog>
  );
}
