"""Logins at services whose subscriptions other programs may use: device and browser flows, their tokens kept and
refreshed."""
