"""Logins with subscriptions that third-party programs may use: device and browser flows, token storage and
refresh."""
