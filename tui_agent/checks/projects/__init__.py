"""Detects checks in a project's files, within limits and without running anything."""
