"""Logins with subscriptions that third-party programs may use."""
