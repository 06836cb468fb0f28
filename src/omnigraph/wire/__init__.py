"""The HTTP formats: the JSON shapes of results and errors, and their conversion back to the library's objects."""
