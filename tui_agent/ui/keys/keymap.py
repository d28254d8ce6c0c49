"""Key assignments: `config/keys.toml`, overridden by a key set and the user's file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct
from textual.binding import Binding, BindingType

from tui_agent.settings.files import WORKSPACE_FOLDER, Unreadable, read_own, read_toml
from tui_agent.settings.folders import config_folder
from tui_agent.ui.actions import ACTIONS, ANYWHERE, APP, Action


class ViewKey(NamedTuple):
    """A name in a table of `config/keys.toml`, and its action if named differently. A `first` key runs
    before the focused widget.
    """

    name: str
    call: str = ""
    first: bool = False


#: By table; `keys.toml` has their descriptions.
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
#: Tables of each dialog. A key has only one meaning within them.
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
    """A `first` key also has a normal binding, because characters never run before the focused widget."""
    return [
        Binding(id, key.call or key.name, show=False, id=id, priority=first)
        for table in tables
        for key in VIEW_KEYS[table]
        for first in {key.first, False}
        for id in (f"{table}.{key.name}",)
    ]


DEFAULT = "default"
VIM = "vim"
LEADER = "leader "
_MOVING = """
    app.palette app.help app.theme app.notices session.chat.sent session.context buffers.find buffers.goto_line
    buffers.find_case buffers.find_regex buffers.find_selection buffers.bracket buffers.symbol
    buffers.next_tab buffers.previous_tab buffers.diff review.history review.open review.diff review.columns
    review.next_hunk review.previous_hunk review.next_file review.previous_file chat.older chat.newer chat.page_up
    chat.page_down chat.bottom chat.reasoning chat.copy subtasks.next subtasks.previous subtasks.chat subtasks.changes
    """
#: A workspace may set only keys of navigation and display.
FOR_WORKSPACES = frozenset(
    name for name in ACTIONS if name.startswith(("pane.", "files.", "known.")) or name in _MOVING.split()
)

_SHOWN = {
    "escape": "Esc",
    "enter": "Enter",
    "space": "Space",
    "tab": "Tab",
    "delete": "Del",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "home": "Home",
    "end": "End",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "backslash": "\\",
    "right_square_bracket": "]",
    "underscore": "_",
}


class Keys(Struct, frozen=True, dict=True):
    """Keys by action id; `leader ` precedes the second of two keys. `faults` are sentences about ignored
    entries.
    """

    by_action: dict[str, tuple[str, ...]]
    faults: tuple[str, ...] = ()
    modal: bool = False

    def keymap(self) -> dict[str, str]:
        single = {
            name: [key for key in keys if not key.startswith(LEADER)] for name, keys in self.by_action.items()
        }
        return {name: ",".join(keys) for name, keys in single.items() if keys}

    def after_leader(self) -> dict[str, Action]:
        return {
            key.removeprefix(LEADER): ACTIONS[name]
            for name, keys in self.by_action.items()
            for key in keys
            if key.startswith(LEADER) and name in ACTIONS
        }

    def single(self, pane: str) -> frozenset[str]:
        return _named(key for name, keys in self.by_action.items() if place_of(name) == pane for key in keys)

    @cached_property
    def of_app(self) -> frozenset[str]:
        """Cached, since every key needs it."""
        return self.single(APP)

    def matches(self, key: str, *names: str) -> bool:
        return key in _named(one for name in names for one in self.by_action.get(name, ()))

    def shown(self, action: str) -> str:
        """Display form of an action's first key (`Ctrl+P`, `F8`, `Ctrl+O u`), or ""."""
        keys = self.by_action.get(action, ())
        return self.spelled(keys[0]) if keys else ""

    def all_shown(self, action: str) -> str:
        return " ".join(self.spelled(key) for key in self.by_action.get(action, ()))

    def spelled(self, key: str) -> str:
        if key.startswith(LEADER):
            return f"{self.shown('app.leader')} {spelled(key.removeprefix(LEADER))}"
        return spelled(key)


def place_of(name: str) -> str:
    return ACTIONS[name].pane if name in ACTIONS else name.partition(".")[0]


def _named(keys: Iterable[str]) -> frozenset[str]:
    single = (Binding(key, "") for key in keys if not key.startswith(LEADER))
    return frozenset(binding.key for binding in Binding.make_bindings(single))


def load_keys(name: str = DEFAULT, folders: Sequence[Path] = ()) -> Keys:
    """A key set, overridden by the `keys.toml` of each folder in order. Never raises."""
    faults: list[str] = []
    files = [config_folder() / "keys.toml"]
    if name != DEFAULT:
        files.append(config_folder() / f"keys-{name}.toml")
    files += [folder / "keys.toml" for folder in folders]
    by_action: dict[str, tuple[str, ...]] = {}
    for position, path in enumerate(files):
        if path.is_file():
            found = _read(path, faults)
            by_action.update(
                _harmless(path, found, by_action, faults) if path.parent.name == WORKSPACE_FOLDER else found
            )
        elif position < len(files) - len(folders):
            faults.append(f"There is no set of keys {name!r}: choose default or vim")
    faults += conflicts(by_action)
    return Keys(by_action, tuple(faults), name == VIM)


def _harmless(
    path: Path, found: dict[str, tuple[str, ...]], before: Mapping[str, tuple[str, ...]], faults: list[str]
) -> dict[str, tuple[str, ...]]:
    """A repository must not assign keys that write, send, commit or run, nor override a stop key."""
    guarded = [name for name in before if name not in FOR_WORKSPACES]
    kept = {}
    for name, keys in found.items():
        meeting = (other for other in guarded if _meet(name, other) and set(keys) & set(before[other]))
        other = next(meeting, "")
        if name not in FOR_WORKSPACES:
            faults.append(
                f"{path}: a workspace may not set the keys of {name}: set them in your own keys.toml"
            )
        elif other:
            faults.append(
                f"{path}: a workspace may not rebind a key of {other} to {name}: set it in your own keys.toml"
            )
        else:
            kept[name] = keys
    return kept


def _meet(name: str, other: str) -> bool:
    places = place_of(name), place_of(other)
    within = {APP} if VIEW_IDS & {name, other} else {APP, ANYWHERE}
    return places[0] == places[1] or not within.isdisjoint(places)


def conflicts(by_action: Mapping[str, Iterable[str]]) -> list[str]:
    """A sentence for each key assigned twice in a context, or both in a pane and globally."""
    owners: dict[tuple[str, str], str] = {}
    found = []
    for name, keys in by_action.items():
        for key in keys:
            if name in VIEW_IDS and key.startswith(LEADER):
                found.append(f"The key {key} of {name} is two: a dialog or a list takes single keys only")
            own = place_of(name)
            if name in VIEW_IDS:
                places = [own, *(f"dialog {dialog}" for dialog, tables in DIALOGS.items() if own in tables)]
            elif own == APP:
                places = [ANYWHERE, *(f"dialog {dialog}" for dialog in DIALOGS)]
            else:
                places = [ANYWHERE if key.startswith(LEADER) else own]
            for place in places:
                other = owners.setdefault((place, key), name)
                if other != name:
                    found.append(f"The key {key} is bound to {other} and {name}: change one in keys.toml")
    for (place, key), name in owners.items():
        everywhere = owners.get((ANYWHERE, key))
        if everywhere and place != ANYWHERE and name in ACTIONS and place == ACTIONS[name].pane:
            found.append(f"The key {key} of {name} hides {everywhere} in that pane: change one in keys.toml")
    return list(dict.fromkeys(found))


def spelled(key: str) -> str:
    *held, last = key.split("+") if len(key) > 1 else (key,)
    if held in (["ctrl"], ["alt"]) and len(last) == 1:
        return f"{held[0].capitalize()}+{last.upper()}"
    if held == ["shift"] and len(last) == 1:
        return last.upper()
    last = _SHOWN.get(last, last.upper() if last[:1] == "f" and last[1:].isdigit() else last)
    return "+".join([*(part.capitalize() for part in held), last])


def _read(path: Path, faults: list[str]) -> dict[str, tuple[str, ...]]:
    try:
        tables = read_toml(read_own(path.parent, path.name).decode())
    except (OSError, UnicodeDecodeError, Unreadable) as error:
        faults.append(f"The keys in {path} cannot be read ({error}): correct the file")
        return {}
    found = {}
    for pane, rows in tables.items():
        if not isinstance(rows, dict):
            faults.append(f"{path}: {pane} is outside a table: write it under [pane]")
            continue
        for name, value in rows.items():
            keys = value if isinstance(value, list) else [value]
            if f"{pane}.{name}" not in ACTIONS and f"{pane}.{name}" not in VIEW_IDS:
                near = get_close_matches(f"{pane}.{name}", (*ACTIONS, *VIEW_IDS), n=1)
                remedy = f"did you mean {near[0]}?" if near else "press the key for help to see all"
                faults.append(f"{path}: there is no action {pane}.{name}: {remedy}")
            elif not all(isinstance(key, str) for key in keys):
                faults.append(
                    f"{path}: the keys of {pane}.{name} are not text: write a key or a list of keys"
                )
            else:
                found[f"{pane}.{name}"] = tuple(key.strip() for key in keys if key.strip())
    return found
