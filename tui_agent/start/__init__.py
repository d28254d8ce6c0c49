"""Starts that find everything imported: the host, and the program that it forks before a terminal is there."""

#: Messages of a program to the host: its first frame is drawn; it has a terminal of this size; the host is to end.
READY, ACCEPTED, END = b"r", b"a", b"e"
