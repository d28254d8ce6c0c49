"""Servers of the Model Context Protocol: configuration, lists, and the process that holds the SDK."""
