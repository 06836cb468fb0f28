"""What is made of rows: values of expressions, groups, order, nested blocks."""
