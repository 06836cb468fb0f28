"""What goes over HTTP: the JSON shapes of results and errors, and the way back to the library's own objects."""
