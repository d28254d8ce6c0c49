"""What is to be found in a file and what replaces it, and where it fits."""

from __future__ import annotations

from msgspec import Struct

from tui_agent.edits.ground import Span
from tui_agent.edits.near import Part


class Wanted(Struct, frozen=True):
    """A piece of text to find, and what replaces it. `name` says in errors what it is.

    With `whole` it consists of whole lines. `threshold` is the floor for a near match, from 0 to 1; over 1 there
    is none.
    """

    search: str
    replace: str
    name: str
    threshold: float = 0.9
    whole: bool = False


class Match(Struct, frozen=True):
    """A place that fits on a rung: the lines from `first` to `end`, before the edit is carried over to them.

    `span` is what was found where that need not be whole lines; `ties` say which lines of the search stand for
    which of the file. `edit` is what is wanted there: the line numbers that a search text had are gone from it.
    """

    rung: str
    first: int
    end: int
    edit: Wanted
    span: Span | None = None
    ties: tuple[Part, ...] = ()
