"""Computing with rows: values of expressions, groups, order, nested blocks."""
