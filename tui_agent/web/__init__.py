"""Pages of the web as text for a model, read in a child process."""
