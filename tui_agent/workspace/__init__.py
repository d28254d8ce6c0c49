"""The folder being worked on: its index, its watcher, imports, the tests of a file, copies of it."""
