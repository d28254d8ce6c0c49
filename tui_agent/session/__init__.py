"""The life of a session, which holds its chat, files, review, todos and sub-tasks."""
