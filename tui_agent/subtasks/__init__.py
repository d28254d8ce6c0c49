"""A graph of sub-tasks; each runs in a copy of the folder and is merged into the review."""
