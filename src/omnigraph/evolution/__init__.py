"""Schema changes: what a wanted schema means for the accepted one, and how a graph gets there in one commit."""
