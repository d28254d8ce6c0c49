"""Sessions that run without a terminal: their sockets, and terminals handed to them."""
