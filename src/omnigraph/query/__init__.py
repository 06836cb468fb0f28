"""The local query engine: runs the plan of a read query against one snapshot and gives Arrow."""
