"""Permissions: policy files, decisions by Cedar, and test cases for policies."""
