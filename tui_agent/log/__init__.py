"""Append-only event log: journal, database, recovery, session catalog, search, import and export."""
