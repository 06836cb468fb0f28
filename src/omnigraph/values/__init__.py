"""Values of the property types as Arrow data: columns, comparisons, identities. Shared by all readers and writers."""
