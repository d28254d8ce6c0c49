"""Decisions about pending changes: apply, skip, undo, conflict resolution, comparison and commits."""
