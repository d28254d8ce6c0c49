"""The repository of a folder, opened as hostile: its status, its diffs, checkpoints and work trees."""
