"""Schema changes: compare a wanted schema with the accepted one, and bring a graph to it in one commit."""
