"""Notebooks: how objects look, the cell magic `%%gq`, progress bars, and the picture that can be explored."""
