"""A graph of work: what may run, each run in a copy of the folder, its work merged into the review."""
