"""A small client for a bookshop's orders and payments."""

__version__ = "0.4.0"
