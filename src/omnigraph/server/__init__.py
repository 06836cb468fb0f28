"""The HTTP server: `omnigraph serve`."""
