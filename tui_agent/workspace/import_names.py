"""One import as a source file writes it."""

from __future__ import annotations

from msgspec import Struct


class Import(Struct, frozen=True):
    """`module` is what is named: `a.b` in Python and Java, `./a` in JavaScript, `x.org/a` in Go, `crate::a::b` in Rust.

    `names` are those taken from it. `level` counts Python's leading dots. `inner` is a Rust `mod` line.
    """

    module: str
    names: tuple[str, ...] = ()
    level: int = 0
    inner: bool = False
