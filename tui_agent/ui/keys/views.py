"""Keys of dialogs and views by table and name in `keys.toml`."""

from __future__ import annotations

from typing import NamedTuple

from textual.binding import Binding, BindingType


class ViewKey(NamedTuple):
    """A name in a table of `config/keys.toml` and the action behind it; the default action has the same name.

    A `first` key runs before the focused widget handles it.
    """

    name: str
    call: str = ""
    first: bool = False


#: Keys by table; `keys.toml` has their descriptions.
VIEW_KEYS: dict[str, tuple[ViewKey, ...]] = {
    "dialog": (ViewKey("close", first=True),),
    "form": (ViewKey("keep", first=True),),
    "answer": (ViewKey("accept", "keep", first=True),),
    "fields": (
        ViewKey("next", "next_field(1)", first=True),
        ViewKey("previous", "next_field(-1)", first=True),
    ),
    "ticks": (ViewKey("tick"), ViewKey("tick_all")),
    "preview": (
        ViewKey("close"),
        ViewKey("next_hunk", "hunk(1)"),
        ViewKey("previous_hunk", "hunk(-1)"),
    ),
    "chooser": (
        ViewKey("choose", first=True),
        ViewKey("yes"),
        ViewKey("up", "move('cursor_up')", first=True),
        ViewKey("down", "move('cursor_down')", first=True),
        ViewKey("page_up", "move('page_up')", first=True),
        ViewKey("page_down", "move('page_down')", first=True),
    ),
    "list": (
        ViewKey("up", "cursor(-1)"),
        ViewKey("down", "cursor(1)"),
        ViewKey("page_up", "page(-1)"),
        ViewKey("page_down", "page(1)"),
        ViewKey("first", "edge(0)"),
        ViewKey("last", "edge(-1)"),
    ),
    "graph": (
        ViewKey("up", "step(0, -1)"),
        ViewKey("down", "step(0, 1)"),
        ViewKey("left", "step(-1, 0)"),
        ViewKey("right", "step(1, 0)"),
    ),
    "block": (ViewKey("press"),),
    "output": (ViewKey("open_next"),),
    "blocks": tuple(map(ViewKey, ("previous", "next", "copy", "open", "unfold", "leave"))),
    "offers": tuple(map(ViewKey, ("choose", "take", "up", "down", "close"))),
    "prompt": (
        ViewKey("mode", "screen.do('session.mode')"),
        ViewKey("carry_out", "screen.do('session.carry_out')"),
    ),
    "line": (ViewKey("leave"),),
    "commit": (ViewKey("tick_too", "tick"), ViewKey("hooks"), ViewKey("draft")),
    "check_list": (
        ViewKey("edit"),
        ViewKey("new"),
        ViewKey("slow"),
        ViewKey("attempt"),
    ),
    "session_list": (
        ViewKey("more", first=True),
        ViewKey("rename"),
        ViewKey("everywhere", "list('everywhere')"),
        ViewKey("sort", "list('sort')"),
        ViewKey("fork"),
        ViewKey("delete"),
    ),
    "inbox": (ViewKey("answer", first=True),),
    "model_list": (
        ViewKey("less_effort", "change_effort(-1)", first=True),
        ViewKey("more_effort", "change_effort(1)", first=True),
        ViewKey("ask_again", first=True),
    ),
    "login": (ViewKey("copy_code", "copy('code')"), ViewKey("copy_page", "copy('page')"), ViewKey("again")),
    "subtask_chat": (ViewKey("reasoning"),),
    "context": (ViewKey("close"),),
    "merge": (
        ViewKey("yours", "take('yours')"),
        ViewKey("theirs", "take('theirs')"),
        ViewKey("both", "take('both')"),
        ViewKey("edit"),
        ViewKey("turn"),
    ),
    "versions": (ViewKey("earlier", "version(1)"), ViewKey("later", "version(-1)"), ViewKey("columns")),
    "attempts": (
        ViewKey("take", first=True),
        ViewKey("next", "attempt(1)", first=True),
        ViewKey("previous", "attempt(-1)", first=True),
        ViewKey("next_file", "file(1)"),
        ViewKey("previous_file", "file(-1)"),
    ),
    "history": (
        ViewKey("choose", first=True),
        ViewKey("next_file", "next_file(1)"),
        ViewKey("previous_file", "next_file(-1)"),
    ),
}
#: Tables of each dialog. Within them a key has only one meaning.
DIALOGS: dict[str, tuple[str, ...]] = {
    "": ("dialog",),
    "chooser": ("dialog", "chooser"),
    "inbox": ("dialog", "chooser", "inbox"),
    "model_list": ("dialog", "chooser", "model_list"),
    "session_list": ("dialog", "chooser", "session_list"),
    "text": ("dialog", "form"),
    "fields": ("dialog", "form", "fields"),
    "key": ("dialog", "answer"),
    "needs": ("dialog", "form", "answer", "ticks"),
    "commit": ("dialog", "form", "fields", "ticks", "commit"),
    "check_list": ("dialog", "form", "answer", "ticks", "check_list"),
    "context": ("dialog", "context"),
    "login": ("dialog", "login"),
    "subtask_chat": ("dialog", "subtask_chat"),
    "replacements": ("dialog", "answer", "preview"),
    "merge": ("dialog", "answer", "preview", "merge"),
    "versions": ("dialog", "preview", "versions"),
    "history": ("dialog", "preview", "history"),
    "attempts": ("dialog", "attempts"),
}
#: Ids in `keys.toml` besides actions; their keys work only in their view.
VIEW_IDS = frozenset(f"{table}.{key.name}" for table, keys in VIEW_KEYS.items() for key in keys)


def view_bindings(*tables: str) -> list[BindingType]:
    """Returns the bindings of these tables, with ids for the keymap.

    A `first` key also has a normal binding, because a character never runs before the focused widget.
    """
    return [
        Binding(id, key.call or key.name, show=False, id=id, priority=first)
        for table in tables
        for key in VIEW_KEYS[table]
        for first in {key.first, False}
        for id in (f"{table}.{key.name}",)
    ]
