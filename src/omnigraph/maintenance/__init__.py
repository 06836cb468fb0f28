"""Maintenance: derived state that queries use and no answer depends on."""
