"""Mutations: insert, update and delete statements become one commit, or none."""
