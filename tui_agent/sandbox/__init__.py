"""Runs commands in a view of the workspace with the pending changes applied. Writes are discarded."""
