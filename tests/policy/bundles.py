"""Bundles that the decision tests share."""

from __future__ import annotations

TEAM = """
version: 1
groups:
  readers: [ann]
  writers: [bob, cleo]
  leads: [cleo]
protected_branches: [main, release/1]
rules:
  - { id: read-all, allow: { actors: { group: readers }, actions: [read], branch_scope: any } }
  - { id: write-read, allow: { actors: { group: writers }, actions: [read, export] } }
  - { id: write-free, allow: { actors: { group: writers }, actions: [change], branch_scope: unprotected } }
  - { id: branch-free, allow: { actors: { group: writers }, actions: [branch_create, branch_delete],
      target_branch_scope: unprotected } }
  - { id: ask, allow: { actors: { group: writers }, actions: [invoke_query] } }
  - { id: lead-main, allow: { actors: { group: leads }, actions: [branch_merge, schema_apply],
      target_branch_scope: protected } }
  - { id: a-lead, allow: { actors: { group: leads }, actions: [read, change] } }
"""
PROTECTED_READERS = """
version: 1
groups: { some: [ann, bob] }
protected_branches: [main]
rules:
  - { id: p, allow: { actors: { group: some }, actions: [read, export], branch_scope: protected } }
  - { id: u, allow: { actors: { group: some }, actions: [change], branch_scope: unprotected } }
  - { id: m, allow: { actors: { group: some }, actions: [branch_merge], target_branch_scope: any } }
"""
NOTHING = """
version: 1
groups: { all: [ann, bob, cleo] }
rules: []
"""
LISTERS = """
version: 1
groups: { ops: [ann, "odd \\"name\\"\\nwith lines"] }
rules:
  - { id: list, allow: { actors: { group: ops }, actions: [graph_list] } }
"""
GRAPH_BUNDLES = {"team": TEAM, "protected": PROTECTED_READERS, "nothing": NOTHING}
ACTORS = ("ann", "bob", "cleo", "eve", None)
#: A branch and a target, as requests have them.
BRANCHES = (
    (None, None),
    ("main", None),
    ("topic", None),
    (None, "main"),
    (None, "topic"),
    ("topic", "main"),
    ("main", "x"),
)
