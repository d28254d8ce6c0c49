"""Bytes on disk, safely: paths that stay inside, files that are replaced whole or not at all."""
