"""The schema language: `.pg` text → AST → catalog → canonical IR with stable ids, and back to text."""
