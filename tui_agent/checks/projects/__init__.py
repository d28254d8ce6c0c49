"""What a project's own files say about how it is checked. They are read within bounds, and nothing of it is run."""
