// The frame of all views: which graph, which state of it, the views, and what is wrong with the connection.
import { useEffect, useRef, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { ApiError, ask, isOffline, needsToken, setToken, token, type Commit } from "../api";
import { branches, useData, graphs, lookAgain, may, news, permissions, tags } from "../data";
import { ago, brief, moment, short, titleOf } from "../format";
import { address, addressOf, at, base, branch, isCommit, open, route } from "../route";
import { TimeDialog } from "./past";
import { Button, Field, Link, Notes } from "./ui";

const VIEWS: [string, string, string?][] = [
  ["overview", "Overview"],
  ["explore", "Explore"],
  ["search", "Search"],
  ["query", "Query"],
  ["branches", "Branches"],
  ["compare", "Compare"],
  ["merge", "Merge", "branch_merge"],
  ["history", "History"],
  ["load", "Load", "change|change_new_branch"],
  ["schema", "Schema"],
  ["upkeep", "Upkeep"],
];

const ICONS: Record<string, string> = {
  overview: "M3 3h7v7H3zM14 3h7v7h-7zM3 14h7v7H3zM14 14h7v7h-7z",
  explore: "M6 6l12 3M6 6l4 12M18 9l-8 9M6 8a2 2 0 100-4 2 2 0 000 4zM18 11a2 2 0 100-4 2 2 0 000 4zM10 20a2 2 0 100-4 2 2 0 000 4z",
  search: "M11 18a7 7 0 100-14 7 7 0 000 14zM16 16l5 5",
  query: "M8 6l-5 6 5 6M16 6l5 6-5 6",
  branches: "M6 8a2 2 0 100-4 2 2 0 000 4zM6 20a2 2 0 100-4 2 2 0 000 4zM18 10a2 2 0 100-4 2 2 0 000 4zM6 8v8M18 10c0 5-12 2-12 6",
  compare: "M4 6h9M4 12h9M4 18h9M17 5v14M14 8l3-3 3 3",
  merge: "M6 8a2 2 0 100-4 2 2 0 000 4zM6 20a2 2 0 100-4 2 2 0 000 4zM18 14a2 2 0 100-4 2 2 0 000 4zM6 8v8M6 8c0 4 5 4 10 4",
  history: "M12 21a9 9 0 100-18 9 9 0 000 18zM12 7v5l4 2",
  load: "M12 3v12M7 10l5 5 5-5M4 20h16",
  schema: "M4 4h7v5H4zM13 15h7v5h-7zM7 9v8h6",
  upkeep: "M4 7h16M4 12h16M4 17h16M8 5v4M15 10v4M10 15v4",
};

function Icon({ name }: { name: string }) {
  return (
    <svg class="icon-svg" viewBox="0 0 24 24" aria-hidden="true">
      <path d={ICONS[name]} />
    </svg>
  );
}

const THEME = "omnigraph.theme";

export function startTheme(): void {
  const kept = localStorage.getItem(THEME);
  const dark = kept ? kept === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
}

function ThemeButton() {
  const [theme, set] = useState(document.documentElement.dataset.theme);
  const other = theme === "dark" ? "light" : "dark";
  return (
    <button
      type="button"
      class="icon"
      aria-label={`Use the ${other} theme`}
      title={`Use the ${other} theme`}
      onClick={() => {
        document.documentElement.dataset.theme = other;
        localStorage.setItem(THEME, other);
        set(other);
        dispatchEvent(new Event("themechange"));
      }}
    >
      {theme === "dark" ? "☀" : "☾"}
    </button>
  );
}

function StatePicker() {
  const now = at.value ? `at:${at.value}` : `branch:${branch.value}`;
  const [isTime, setTime] = useState(false);
  const named = Object.entries(tags.value);
  const known = at.value !== null && named.some(([, commit]) => commit === at.value);
  return (
    <div class="picker">
      <label class="visually-hidden" for="state">Branch or commit</label>
      <select
        id="state"
        value={now}
        onChange={(event) => {
          if (event.currentTarget.value === "time:") {
            event.currentTarget.value = now;
            setTime(true);
            return;
          }
          const [kind, ...rest] = event.currentTarget.value.split(":");
          const value = rest.join(":");
          const others = Object.fromEntries([...route.value.params].filter(([name]) => name !== "branch" && name !== "at"));
          open(addressOf(route.value.graph ?? "", route.value.view, { ...others, [kind]: value === "main" && kind === "branch" ? null : value }));
        }}
      >
        <optgroup label="Branches">
          {branches.value.map((each) => (
            <option value={`branch:${each.name}`}>{each.name}</option>
          ))}
          {branch.value && !branches.value.some((each) => each.name === branch.value) && (
            <option value={`branch:${branch.value}`}>{branch.value}</option>
          )}
        </optgroup>
        {named.length > 0 && (
          <optgroup label="Tags">
            {named.map(([name, commit]) => (
              <option value={`at:${commit}`}>{name}</option>
            ))}
          </optgroup>
        )}
        {at.value && !known && <option value={`at:${at.value}`}>commit {brief(at.value)}</option>}
        <optgroup label="Earlier">
          <option value="time:">at a time…</option>
        </optgroup>
      </select>
      {isTime && <TimeDialog close={() => setTime(false)} />}
    </div>
  );
}

export function Shell({ children }: { children: ComponentChildren }) {
  const [isOpen, setOpen] = useState(false);
  const here = route.value;
  const content = useRef<HTMLElement>(null);
  const first = useRef(true);
  useEffect(() => {
    setOpen(false);
    // A new view is announced by moving the focus to it, as a page load would.
    if (!first.current) content.current?.focus({ preventScroll: true });
    first.current = false;
  }, [here.view]);
  const title = VIEWS.find(([name]) => name === here.view)?.[1] ?? "Studio";
  useEffect(() => {
    document.title = `${title} · ${here.graph ?? "OmniGraph"}`;
  }, [title, here.graph]);
  return (
    <div class="shell">
      <a class="skip" href="#content" onClick={(event) => { event.preventDefault(); content.current?.focus(); }}>
        Skip to the content
      </a>
      <header class="top">
        <button type="button" class="icon menu" aria-label="Menu" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          ☰
        </button>
        <span class="brand">
          <img src="/favicon.svg" alt="" width="22" height="22" />
          <span class="brand-name">OmniGraph</span>
        </span>
        {graphs.value.length > 1 ? (
          <label class="picker">
            <span class="visually-hidden">Graph</span>
            <select value={here.graph ?? ""} onChange={(event) => open(addressOf(event.currentTarget.value, "overview", {}))}>
              {graphs.value.map((name) => (
                <option>{name}</option>
              ))}
            </select>
          </label>
        ) : (
          here.graph && <span class="graph-name">{here.graph}</span>
        )}
        {here.graph && <StatePicker />}
        <span class="grow" />
        {permissions.value?.read_only && <span class="badge">read-only</span>}
        {permissions.value?.actor_id && <span class="actor" title="The actor of your token">{permissions.value.actor_id}</span>}
        <ThemeButton />
        {token.value && (
          <button type="button" class="icon" title="Forget the token of this tab" aria-label="Forget the token of this tab" onClick={() => { setToken(null); needsToken.value = ""; }}>
            <svg class="icon-svg" viewBox="0 0 24 24" aria-hidden="true"><path d="M9 4H5v16h4M14 8l4 4-4 4M18 12H9" /></svg>
          </button>
        )}
      </header>
      <nav class={`side ${isOpen ? "is-open" : ""}`} aria-label="Views" onClick={() => setOpen(false)}>
        {VIEWS.filter(([, , actions]) => !actions || actions.split("|").some(may)).map(([name, shown]) => (
          <Link to={address(name)} aria-current={here.view === name ? "page" : undefined}>
            <Icon name={name} />
            {shown}
          </Link>
        ))}
      </nav>
      <main id="content" ref={content} tabIndex={-1}>
        {isOffline.value && (
          <div class="banner bad" role="alert">
            The connection to the server is lost. Studio tries again and goes on when it is back; nothing you typed is lost.
          </div>
        )}
        {news.value.length > 0 && here.view !== "merge" && (
          <div class="banner news" role="status">
            <span>
              {news.value.length === 1 ? <><b>{news.value[0].name}</b> has changed: {titleOf(news.value[0].head)}, by {news.value[0].head.actor ?? "somebody"}, {ago(news.value[0].head.created_at)}.</> : <>{news.value.length} branches have changed: {news.value.slice(0, 5).map((each) => each.name).join(", ")}.</>}
            </span>
            <Button onClick={lookAgain}>Show the newest</Button>
          </div>
        )}
        {at.value && isCommit(at.value) && <Past />}
        {children}
      </main>
      <Notes />
    </div>
  );
}

/** Says that an old state is shown: which one, and when that was. */
function Past() {
  const here = route.value;
  const commit = useData((signal) => ask<{ library: Commit }>("GET", `${base.value}/commits/${encodeURIComponent(at.value!)}`, { signal }), [base.value, at.value]);
  const about = commit.data?.library;
  const back = <Link class="button" to={addressOf(here.graph ?? "", here.view, { ...Object.fromEntries(here.params), at: null })}>Back to main</Link>;
  if (commit.error instanceof ApiError && commit.error.status === 404)
    return <div class="banner bad news" role="alert"><span>{commit.error.message}</span>{back}</div>;
  return (
    <div class="banner news" role="note">
      <span>
        You look at the graph as it was at commit <code title={at.value!}>{brief(at.value!)}</code>
        {about && <>, “<bdi>{short(titleOf(about), 60)}</bdi>” of {moment(about.created_at)} ({ago(about.created_at)})</>}. Nothing here can be changed.
      </span>
      {back}
    </div>
  );
}

export function TokenForm() {
  const [given, set] = useState("");
  return (
    <main class="gate">
      <form
        class="card gate-card"
        onSubmit={(event) => {
          event.preventDefault();
          needsToken.value = null;
          setToken(given.trim());
        }}
      >
        <h1>
          <img src="/favicon.svg" alt="" width="30" height="30" /> OmniGraph Studio
        </h1>
        <p>This server wants a token. It is kept for this tab only, and sent to this server only.</p>
        {needsToken.value && (
          <div class="problem" role="alert">
            {needsToken.value}
          </div>
        )}
        <Field label="Token" hint="`omnigraph serve` shows one when it starts; else ask who runs the server.">
          <input type="password" autocomplete="off" spellcheck={false} value={given} onInput={(event) => set(event.currentTarget.value)} autofocus />
        </Field>
        <Button kind="main" type="submit" disabled={!given.trim()}>
          Continue
        </Button>
      </form>
    </main>
  );
}
