"""Servers of the Model Context Protocol: their configuration, their lists, and the process that holds the SDK."""
