"""Servers on loopback that play the providers' APIs and enforce their rules; see `server.py`."""

from support.strict.reply import Call, Refusal, Reply, Say, StrictError, Think, View
from support.strict.server import StrictServer
from support.strict.serving import StrictRequest

__all__ = ["Call", "Refusal", "Reply", "Say", "StrictError", "StrictRequest", "StrictServer", "Think", "View"]
