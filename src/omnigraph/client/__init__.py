"""The verbs of a graph over HTTP: `omnigraph.connect`."""
