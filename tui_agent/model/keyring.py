"""Keys of providers in the system's keyring, where the package `keyring` is installed. They are in no file of ours."""

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
    """Whether the package is installed; it is not imported here."""
    return find_spec("keyring") is not None


def store(name: str, key: str) -> bool:
    """Keep a key under the name of its variable; False where the system does not take it. For a thread."""
    return _done("set_password", SERVICE, name, key) is not _FAILED


def stored(model: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The key of a model's provider that was kept, by the name of its variable; nothing where the environment has
    one, or none was kept. For a thread."""
    provider = provider_of(model)
    if provider is None or any(map(environment.get, provider.keys)) or not available():
        return {}
    found = {name: _done("get_password", SERVICE, name) for name in provider.keys}
    return {name: key for name, key in found.items() if isinstance(key, str) and key}


def read(name: str) -> str:
    """What is kept under a name; "" if there is nothing, or the system does not give it. For a thread."""
    found = _done("get_password", SERVICE, name) if available() else ""
    return found if isinstance(found, str) else ""


def delete(name: str) -> None:
    """Keep nothing under a name any more. For a thread."""
    _done("delete_password", SERVICE, name)


_FAILED = object()


def _done(call: str, *arguments: str) -> Any:
    """What a call of the package gives; `_FAILED` where it fails: there are many backends, each with its errors."""
    try:
        return getattr(import_module("keyring"), call)(*arguments)
    except Exception:
        _log.debug("the keyring failed", exc_info=True)
        return _FAILED
