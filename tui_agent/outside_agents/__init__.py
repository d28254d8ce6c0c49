"""Agents of other makers, run in views: their profiles, homes, terminals and changes."""
