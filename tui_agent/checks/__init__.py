"""Checks of a project (tests, linters and similar), and their output."""
