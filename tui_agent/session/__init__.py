"""The lifecycle of a session: chat, files, review, todos and sub-tasks."""
