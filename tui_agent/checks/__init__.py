"""Checks of a project (tests, linters and similar), and interpretation of their output."""
