"""What happened, kept: the journal, its database, recovery, the catalog of sessions, search, import and export."""
