"""Pending changes decided: applied, skipped, undone, conflicts settled, versions compared and committed."""
