"""Fast starts: the host has everything imported, and forks a program before a terminal is there."""

#: Messages of a program to the host: its first frame is drawn; it has a terminal of this size; the host is to
#: end.
READY, ACCEPTED, END = b"r", b"a", b"e"
#: Ending of the file that the host keeps locked.
LOCK = ".lock"
