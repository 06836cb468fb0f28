"""Values of the property types as Arrow data: columns, comparisons, identities. The joint of every reader and writer."""
