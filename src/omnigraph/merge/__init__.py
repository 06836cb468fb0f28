"""Three-way merge, revert and cherry-pick: three states become one commit, entity by entity."""
