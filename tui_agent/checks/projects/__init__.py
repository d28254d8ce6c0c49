"""Detects checks in a project's files, with size limits and without running anything."""
