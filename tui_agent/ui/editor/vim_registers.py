"""Vim's registers, which all text areas of an application share."""

from __future__ import annotations

from typing import ClassVar, NamedTuple
from weakref import WeakKeyDictionary

from textual.app import App


class Register(NamedTuple):
    """Text of a register, and whether it consists of whole lines."""

    text: str = ""
    lines: bool = False


class Registers:
    """Registers of all text areas of an application."""

    _by_app: ClassVar[WeakKeyDictionary[App[object], Registers]] = WeakKeyDictionary()

    def __init__(self) -> None:
        self._by_name: dict[str, Register] = {}

    @classmethod
    def of(cls, app: App[object]) -> Registers:
        return cls._by_app.setdefault(app, cls())

    def read(self, name: str, app: App[object]) -> Register:
        if name in ("+", "*"):
            return Register(app.clipboard, app.clipboard.endswith("\n"))
        return self._by_name.get(name.lower() or '"', Register())

    def write(self, name: str, register: Register, app: App[object], *, copied: bool) -> None:
        if name == "_":
            return
        if name in ("+", "*"):
            app.copy_to_clipboard(register.text + "\n" * register.lines)
        elif name.isupper():
            before = self._by_name.get(name.lower(), Register())
            between = "\n" if before.text and (before.lines or register.lines) else ""
            register = Register(before.text + between + register.text, before.lines or register.lines)
        if name:
            self._by_name[name.lower()] = register
        elif copied:
            self._by_name["0"] = register
        self._by_name['"'] = register
