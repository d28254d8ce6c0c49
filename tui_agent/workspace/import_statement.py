"""An import statement."""

from __future__ import annotations

from msgspec import Struct


class Import(Struct, frozen=True):
    """`module` as written: `a.b` in Python and Java, `./a` in JavaScript, `x.org/a` in Go, `crate::a::b` in
    Rust.

    `names` are imported from it. `level` counts Python's leading dots. `inner` is a Rust `mod` line.
    """

    module: str
    names: tuple[str, ...] = ()
    level: int = 0
    inner: bool = False
