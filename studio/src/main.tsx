// Studio starts here: the one-time key, the token, the graph, then the view that the address names.
import { render, type ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ApiError, ask, needsToken, takeKey, token } from "./api";
import { graphs, loadGraphs, useData, useGraph, useNews, usePermissions } from "./data";
import { Shell, startTheme, TokenForm } from "./parts/shell";
import { Empty, Link, Loading, Problem, Shown } from "./parts/ui";
import { addressOf, adjust, at, base, isCommit, open, route } from "./route";
import "./styles.css";

type View = ComponentType<{}>;

const VIEWS: Record<string, () => Promise<{ default: View }>> = {
  overview: () => import("./views/overview"),
  explore: () => import("./views/explore"),
  search: () => import("./views/search"),
  query: () => import("./views/query"),
  branches: () => import("./views/branches"),
  compare: () => import("./views/compare"),
  merge: () => import("./views/merge"),
  history: () => import("./views/history"),
  load: () => import("./views/load"),
  schema: () => import("./views/schema"),
  upkeep: () => import("./views/upkeep"),
};

function Now() {
  const name = route.value.view;
  const [view, set] = useState<{ name: string; View: View } | null>(null);
  const [error, setError] = useState<Error | null>(null);
  useEffect(() => {
    let isWanted = true;
    setError(null);
    VIEWS[name]?.().then(
      (loaded) => isWanted && set({ name, View: loaded.default }),
      () => isWanted && setError(new Error("This view could not be loaded; reload the page when the server is back.")),
    );
    return () => {
      isWanted = false;
    };
  }, [name]);
  if (!VIEWS[name])
    return (
      <Empty title="There is no such view">
        <Link to={addressOf(route.value.graph ?? "", "overview", {})}>Go to the overview</Link>
      </Empty>
    );
  if (error) return <Problem error={error} />;
  if (view?.name !== name) return <Loading />;
  return <view.View key={`${route.value.graph} ${name}`} />;
}

function Graph() {
  const shared = useGraph();
  usePermissions();
  useNews();
  const isGone = shared.error instanceof ApiError && shared.data === null && (shared.error.status === 404 || !graphs.value.includes(route.value.graph ?? ""));
  return (
    <Shell>
      {isGone ? <Gone error={shared.error!} /> : <Shown of={shared}>{() => (at.value && !isCommit(at.value) ? <Resolve key={at.value} given={at.value} /> : <Now />)}</Shown>}
    </Shell>
  );
}

/** An address that names a graph or a branch that is not there: say so, and lead on. */
function Gone({ error }: { error: Error }) {
  const here = route.value;
  const isKnown = graphs.value.includes(here.graph ?? "");
  return (
    <>
      <Problem error={error} />
      {isKnown ? (
        <Empty title="Somebody may have deleted or merged it"><Link class="button" to={addressOf(here.graph!, here.view, {})}>Go to main</Link></Empty>
      ) : (
        <Empty title={graphs.value.length ? "This server has other graphs" : "This server serves no graph"}>
          <div class="actions wrap centred">{graphs.value.map((name) => <Link class="button" to={addressOf(name, "overview", {})}>{name}</Link>)}</div>
        </Empty>
      )}
    </>
  );
}

/** A tag, a time or `main~3` in an address becomes the commit that it names. */
function Resolve({ given }: { given: string }) {
  const found = useData((signal) => ask<{ library: { commit: string } }>("GET", `${base.value}/snapshot`, { query: { snapshot: given }, signal }), [base.value, given]);
  const commit = found.data?.library.commit;
  useEffect(() => {
    if (commit) adjust({ at: commit });
  }, [commit]);
  if (!found.error) return <Loading />;
  return (
    <>
      <Problem error={found.error} />
      <Empty title="This address names no state of the graph"><Link class="button" to={addressOf(route.value.graph ?? "", route.value.view, {})}>Go to main</Link></Empty>
    </>
  );
}

function Start() {
  const [error, setError] = useState<Error | null>(null);
  const [isReady, setReady] = useState(false);
  useEffect(() => {
    setError(null);
    loadGraphs().then(
      () => {
        setReady(true);
        if (!route.value.graph && graphs.value.length) open(addressOf(graphs.value[0], "overview", {}), true);
        else if (!graphs.value.length) needsToken.value = token.value ? "this server does not know this token" : "";
      },
      (problem) => setError(problem),
    );
  }, [token.value]);
  if (needsToken.value !== null && !(needsToken.value && isReady && route.value.graph)) return <TokenForm />;
  if (error) return <main class="gate"><Problem error={error} /></main>;
  if (!isReady) return <main class="gate"><Loading /></main>;
  if (!route.value.graph) return <main class="gate"><Empty title="This server serves no graph">Start it with a graph: omnigraph serve GRAPH.omni</Empty></main>;
  // A token that is refused in the middle of work: what was typed stays behind the form, until there is another one.
  return (
    <>
      <div hidden={needsToken.value !== null}><Graph /></div>
      {needsToken.value !== null && <TokenForm />}
    </>
  );
}

startTheme();
await takeKey();
render(<Start />, document.getElementById("app")!);
