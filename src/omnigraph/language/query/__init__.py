"""The query language: `.gq` text → AST → type check → typed IR → rewrites; parameters, lint, operation descriptors."""
