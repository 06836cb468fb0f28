"""Other libraries and formats."""
