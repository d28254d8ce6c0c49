"""The workspace folder: index, watcher, imports, tests and copies."""
