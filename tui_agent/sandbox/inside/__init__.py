"""Sandbox program: creates a view and runs commands in it. Imports only the standard library."""
