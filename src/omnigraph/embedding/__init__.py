"""Embedding of texts as vectors: the providers, their configuration, and the validation of their answers."""
