"""A terminal workspace in which a person and a language model change a code base together."""

__version__ = "0.1.0"
