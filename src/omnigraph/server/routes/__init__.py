"""The operations of the server, one module per family."""
