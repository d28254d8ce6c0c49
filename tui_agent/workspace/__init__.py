"""The workspace folder: index, watcher, imports, test lookup and copies."""
