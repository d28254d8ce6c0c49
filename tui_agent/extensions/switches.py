"""Hooks and servers that the person switched on by name, each with the fingerprint of its exact content."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tui_agent.errors import SettingsError
from tui_agent.files.private import write_private
from tui_agent.settings.files import read_small, reason_of
from tui_agent.settings.folders import Folders


class Switches:
    """The entries of one kind that are on, in a file of the data folder, by place and name. Blocking."""

    def __init__(self, folders: Folders, file: str) -> None:
        self._path = folders.data / file

    def of(self, place: str) -> Mapping[str, str]:
        """Fingerprints by name; empty if the file is unreadable."""
        return self._read().get(place, {})

    def turn(self, place: str, name: str, fingerprint: str) -> None:
        """Switches an entry on, or off with "". Raises SettingsError if the decision cannot be stored."""
        stored = self._read()
        mine = {other: value for other, value in stored.get(place, {}).items() if other != name}
        stored[place] = {**mine, name: fingerprint} if fingerprint else mine
        try:
            write_private(self._path, msgspec.json.format(msgspec.json.encode(stored)))
        except OSError as error:
            raise SettingsError(
                f"{self._path} cannot be written ({reason_of(error)})",
                "set TUI_AGENT_HOME to a folder that can",
            ) from None

    def _read(self) -> dict[str, dict[str, str]]:
        try:
            return msgspec.json.decode(read_small(self._path), type=dict[str, dict[str, str]])
        except (OSError, msgspec.DecodeError):
            return {}
