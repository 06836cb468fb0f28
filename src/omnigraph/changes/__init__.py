"""What changed: between two versions of a table, two snapshots, a commit and its parent, and along a branch."""
