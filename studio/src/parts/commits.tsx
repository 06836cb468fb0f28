// Commits in a list, with who made them and when.
import { ago, kindOf, moment, short, titleOf } from "../format";
import type { Commit } from "../api";
import { address } from "../route";
import { Badge, Link } from "./ui";

export function CommitLine({ commit }: { commit: Commit }) {
  return (
    <li class="commit-line">
      <Badge kind={`kind-${commit.kind}`}>{kindOf(commit)}</Badge>
      <span class="commit-text">
        <Link to={address("history", { commit: commit.id })} title={commit.id}>
          {short(titleOf(commit), 120)}
        </Link>
        <span class="dim">
          {commit.actor ?? "nobody named"} · <time title={moment(commit.created_at)}>{ago(commit.created_at)}</time>
        </span>
      </span>
    </li>
  );
}
