"""The screen in a browser: an HTTP server on this machine and a terminal for each page."""
