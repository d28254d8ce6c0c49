"""Provider keys in the system keyring, if the package `keyring` is installed. Keys are never written to our
files.

The functions block; call them on a thread.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from tui_agent.model.providers import provider_of

_log = logging.getLogger(__name__)
SERVICE = "tui-agent"


def available() -> bool:
    return find_spec("keyring") is not None


def store(name: str, key: str) -> bool:
    return _done("set_password", SERVICE, name, key) is not _FAILED


def stored(model: str, environment: Mapping[str, str]) -> dict[str, str]:
    provider = provider_of(model)
    if provider is None or any(map(environment.get, provider.keys)) or not available():
        return {}
    found = {name: _done("get_password", SERVICE, name) for name in provider.keys}
    return {name: key for name, key in found.items() if isinstance(key, str) and key}


def read(name: str) -> str:
    """The value stored under a name; "" if missing or inaccessible."""
    found = _done("get_password", SERVICE, name) if available() else ""
    return found if isinstance(found, str) else ""


def delete(name: str) -> None:
    _done("delete_password", SERVICE, name)


_FAILED = object()


def _done(call: str, *arguments: str) -> Any:
    try:
        return getattr(import_module("keyring"), call)(*arguments)
    except Exception:
        _log.debug("the keyring failed", exc_info=True)
        return _FAILED
