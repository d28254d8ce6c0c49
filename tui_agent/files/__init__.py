"""Safe file access: paths confined to a folder, and atomic replacement of files."""
