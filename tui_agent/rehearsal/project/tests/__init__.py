"""Tests of the shop, without a network."""
