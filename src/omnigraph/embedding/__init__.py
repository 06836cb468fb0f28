"""Texts become vectors: the providers, how one is configured, and the one place that judges what they answer."""
