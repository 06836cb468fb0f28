// What this graph is: its types and how they connect, its newest commits, its branches, the state of its storage.
import { ask, type Commit } from "../api";
import { branches, may, useData } from "../data";
import { bytes, number, plural } from "../format";
import { CommitLine } from "../parts/commits";
import { SchemaPicture } from "../parts/schemapicture";
import { wantingIndexes } from "./upkeep";
import { Badge, Card, Empty, Link, Shown, TypeName } from "../parts/ui";
import { address, at, base, branch, target } from "../route";
import { BranchRow } from "./branches";

interface Dataset {
  entity_kind: string;
  type_name: string;
  entity_count: number;
}

export default function Overview() {
  const on = at.value ?? branch.value ?? "main";
  const tables = useData(
    (signal) => ask<{ datasets: Dataset[] }>("GET", `${base.value}/snapshot`, { query: target.value, signal }),
    [base.value, on],
  );
  const newest = useData(
    async (signal) => {
      const then = at.value ? (await ask<{ library: Commit }>("GET", `${base.value}/commits/${encodeURIComponent(at.value)}`, { signal })).library : null;
      const query = { branch: then?.branch ?? branch.value ?? "main", until: then?.created_at, limit: 6 };
      return ask<{ library: Commit[] }>("GET", `${base.value}/commits`, { query, signal });
    },
    [base.value, branch.value, at.value],
  );
  const stats = useData(
    (signal) => ask<any>("GET", `${base.value}/stats`, { query: { branch: branch.value ?? "main" }, signal }),
    [base.value, branch.value],
  );
  const recovered = useData((signal) => ask<any>("GET", `${base.value}/recoveries`, { signal }), [base.value]);
  return (
    <>
      <h1>Overview</h1>
      <Card title="Types">
        <Shown of={tables}>
          {({ datasets }) => {
            const counts = Object.fromEntries(datasets.map((each) => [each.type_name, each.entity_count]));
            const nodes = datasets.filter((each) => each.entity_kind === "node");
            const edges = datasets.filter((each) => each.entity_kind === "edge");
            const sum = (list: Dataset[]) => list.reduce((total, each) => total + each.entity_count, 0);
            if (!datasets.length)
              return <Empty title="This graph has no types yet"><Link to={address("schema")}>Write its schema</Link></Empty>;
            return (
              <>
                <p class="figures">
                  <span><b>{number(sum(nodes))}</b> nodes of {plural(nodes.length, "type")}</span>
                  <span><b>{number(sum(edges))}</b> edges of {plural(edges.length, "type")}</span>
                </p>
                {sum(nodes) === 0 && !at.value && (may("change") || may("change_new_branch")) && <p>There is no data yet. <Link to={address("load")}>Load a file</Link>, or write an insert under <Link to={address("query")}>Query</Link>.</p>}
                <div class="types">
                <SchemaPicture counts={counts} />
                <div class="two">
                  <ul class="plain-list" aria-label="Node types">
                    {nodes.map((each) => (
                      <li><Link to={address("explore", { type: each.type_name })}><TypeName name={each.type_name} /></Link><span class="number">{number(each.entity_count)}</span></li>
                    ))}
                  </ul>
                  <ul class="plain-list" aria-label="Edge types">
                    {edges.map((each) => (
                      <li><span>{each.type_name}</span><span class="number">{number(each.entity_count)}</span></li>
                    ))}
                  </ul>
                </div>
                </div>
              </>
            );
          }}
        </Shown>
      </Card>
      <div class="columns">
        <Card title="Newest commits" actions={<Link to={address("history")}>All</Link>}>
          <Shown of={newest}>
            {({ library }) => <ul class="commits">{library.map((commit) => <CommitLine key={commit.id} commit={commit} />)}</ul>}
          </Shown>
        </Card>
        <Card title="Branches" actions={<Link to={address("branches")}>All</Link>}>
          <ul class="branch-list">
            {branches.value.slice(0, 6).map((each) => <BranchRow key={each.name} each={each} />)}
          </ul>
          {branches.value.length > 6 && <p class="more"><Link to={address("branches")}>{plural(branches.value.length - 6, "other branch", "other branches")}</Link></p>}
        </Card>
        <Card title="Storage" actions={<Link to={address("upkeep")}>Upkeep</Link>}>
          <Shown of={stats}>
            {(told) => {
              const all = told.tables as any[];
              const missing = all.reduce((sum, table) => sum + wantingIndexes(table), 0);
              const compact = all.reduce((sum, table) => sum + table.fragments_to_compact, 0);
              return (
                <ul class="plain-list">
                  <li><span>Data</span><span class="number">{bytes(all.reduce((sum, table) => sum + table.bytes, 0))}</span></li>
                  <li><span>Indexes</span>{missing ? <Badge kind="warn">{plural(missing, "index", "indexes")} to build</Badge> : <Badge kind="good">complete</Badge>}</li>
                  <li><span>Fragments</span>{compact ? <Badge kind="warn">{compact} to compact</Badge> : <Badge kind="good">compact</Badge>}</li>
                  <li>
                    <span>Recoveries</span>
                    <Shown of={recovered}>
                      {(found) => found.waiting ? <Badge kind="warn">{found.waiting} waiting</Badge> : <span class="number">{found.recoveries.length}</span>}
                    </Shown>
                  </li>
                </ul>
              );
            }}
          </Shown>
        </Card>
      </div>
    </>
  );
}
