// Studio starts here: the one-time key, the token, the graph, then the view that the address names.
import { render, type ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { needsToken, takeKey, token } from "./api";
import { graphs, loadGraphs, useGraph, useNews, usePermissions } from "./data";
import { Shell, startTheme, TokenForm } from "./parts/shell";
import { Empty, Link, Loading, Problem, Shown } from "./parts/ui";
import { addressOf, open, route } from "./route";
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
  return (
    <Shell>
      <Shown of={shared}>{() => <Now />}</Shown>
    </Shell>
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
  if (needsToken.value !== null) return <TokenForm />;
  if (error) return <main class="gate"><Problem error={error} /></main>;
  if (!isReady) return <main class="gate"><Loading /></main>;
  if (!route.value.graph) return <main class="gate"><Empty title="This server serves no graph">Start it with a graph: omnigraph serve GRAPH.omni</Empty></main>;
  return <Graph />;
}

startTheme();
await takeKey();
render(<Start />, document.getElementById("app")!);
