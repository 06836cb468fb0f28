"""Agents: the verbs of a graph as tools of the Model Context Protocol, on standard input and output and over HTTP."""
