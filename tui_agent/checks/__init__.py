"""Checks: tests, linters and the like that a project has, and what their output says."""
