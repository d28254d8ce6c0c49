"""Schema of all settings: key, type, range and default; validation and parsing by dotted key.

A test keeps `config/settings.toml`, the user's reference, consistent with it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

Effort = Literal["auto", "none", "low", "medium", "high", "max"]
#: How much a turn may do without the person; a session changes it by key.
Mode = Literal["ask", "edit", "auto"]
#: Points at which hooks run. `BeforeApply`, `ChangesProposed` and `Applied` are ours, the others the most used agent's.
HookEvent = Literal[
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PreCompact",
    "ChangesProposed",
    "BeforeApply",
    "Applied",
    "Stop",
    "SubagentStop",
    "Notification",
    "SessionEnd",
]
Share = Annotated[float, Meta(ge=0.05, le=1.0)]
Count = Annotated[int, Meta(ge=0)]
Dollars = Annotated[float, Meta(ge=0.0)]
#: A file name without a folder.
FileName = Annotated[str, Meta(pattern=r"^(?!\.{1,2}$)[^/\\\x00-\x1f\x7f]{1,255}$")]
#: A glob for paths inside the workspace.
Glob = Annotated[str, Meta(pattern=r"^(?![/~])(?!(?:[^\x00]*/)?\.\.(?:/|$))[^\x00]+$")]
FileNames = tuple[FileName, ...]
Globs = tuple[Glob, ...]


class FilesSettings(Struct, frozen=True):
    max_per_action: Annotated[int, Meta(ge=1, le=1000)] = 20
    """How many files one pattern may match before it is too broad and the next one is tried."""

    pattern_timeout: Annotated[float, Meta(ge=0.05, le=60.0)] = 2.0
    """Seconds that one pattern may search."""


class KnownSettings(Struct, frozen=True):
    max_files: Annotated[int, Meta(ge=1, le=100_000)] = 500
    """How many files are remembered as seen by the model."""


class ContextSettings(Struct, frozen=True):
    window: Annotated[int, Meta(ge=0, le=100_000_000)] = 0
    """Size of the model's context window in tokens; 0 takes what is known of the model, else 32,000."""

    reset_at: Share = 0.8
    """Share of the window at which files are taken out of the prompt."""

    reset_to: Share = 0.5
    """Share of the window that the request then fills, as near as whole files allow; below reset_at."""

    condense_at: Share = 0.9
    """Share of the window at which older messages are summarised."""

    keep_on_failure: Share = 0.75
    """Share of the messages, the newest, that is kept where summarising fails."""


class InstructionsSettings(Struct, frozen=True):
    names: FileNames = ("AGENTS.md", "TUI_AGENT.md", "KODELET.md", "CLAUDE.md")
    """Names of instruction files; of each folder the first that is there is used."""

    exclude: Globs = ()
    """Globs of instruction files that are left alone."""

    max_bytes: Annotated[int, Meta(ge=0, le=16_777_216)] = 65_536
    """Instruction files larger than this many bytes are left alone."""


class BundlingSettings(Struct, frozen=True):
    enabled: bool = True
    """After a change is applied, send what belongs to the changed files with the next request."""

    imports: bool = True
    """Bundle the files that a changed file imports."""

    tests: bool = True
    """Bundle the tests of a changed file."""

    max_files: Annotated[int, Meta(ge=0, le=100)] = 5
    """How many files a bundle may hold."""

    depth: Annotated[int, Meta(ge=1, le=5)] = 1
    """How many imports away from the changed file a bundle reaches."""


class ReviewSettings(Struct, frozen=True):
    near_threshold: Annotated[float, Meta(ge=0.5, le=1.0)] = 0.9
    """How similar a place must be to the text of an edit, from 0 to 1; between equal ends twice as much may differ."""


class ScreenSettings(Struct, frozen=True):
    plain: bool = False
    """One pane at a time in lines of text, with what happens said below: for screen readers and braille."""

    bell_after: Annotated[float, Meta(ge=0.0, le=86_400.0)] = 20.0
    """Seconds after which a turn that ends unseen rings the bell; 0 means never."""


class SessionSettings(Struct, frozen=True):
    linger: Annotated[int, Meta(ge=0, le=604_800)] = 1800
    """Seconds that a session without a terminal waits after its work; 0 ends it when its terminal closes."""


#: A destination of ssh; one that begins with `-` would be an option.
HostName = Annotated[str, Meta(pattern=r"^[^\s\x00-\x1f\x7f-][^\s\x00-\x1f\x7f]{0,254}\Z")]


class RemoteSettings(Struct, frozen=True):
    hosts: tuple[HostName, ...] = ()
    """Hosts of ssh whose running sessions `tui-agent ps` and the inbox list too."""


class StartSettings(Struct, frozen=True):
    keep_ready: bool = True
    """Keep a process ready that lets the next start show its screen at once (about 100 MB of memory)."""

    idle: Annotated[int, Meta(ge=1, le=604_800)] = 1800
    """Seconds without a session of this process and without a start after which it ends."""


class SubTaskSettings(Struct, frozen=True):
    begin: Literal["manual", "ticked", "auto"] = "ticked"
    """How sub-tasks begin: manual (each by key), ticked (those you ticked, by key), or auto (at once, where marked)."""

    max_parallel: Annotated[int, Meta(ge=1, le=32)] = 3
    """How many sub-tasks run at once."""

    max_depth: Annotated[int, Meta(ge=0, le=5)] = 1
    """How deep sub-tasks may have sub-tasks of their own; 0 allows none at all."""

    max_per_turn: Annotated[int, Meta(ge=1, le=1000)] = 8
    """How many sub-tasks one turn may have; what is more is refused by name."""

    max_seconds: Count = 1800
    """Seconds that one sub-task may take; 0 means no limit."""

    max_tokens: Count = 0
    """Tokens that one sub-task may use; 0 means no limit."""

    max_cost: Dollars = 0.0
    """Dollars that one sub-task may cost; 0 means no limit."""

    silent_after: Annotated[int, Meta(ge=1)] = 30
    """Seconds without a word after which a sub-task is shown as silent."""


class ModelOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """For models whose full name matches the glob `name`. Missing options default to those of all models."""

    name: Annotated[str, Meta(pattern=r"^[^\x00-\x1f\x7f]{1,200}$")]
    effort: Effort | None = None
    max_output: Count | None = None
    temperature: Annotated[float, Meta(ge=-1.0, le=2.0)] | None = None


class ModelsSettings(Struct, frozen=True):
    transport: Literal["auto", "litellm", "direct"] = "auto"
    """How providers are reached: auto is directly if their interface is known, else through litellm."""

    fallbacks: tuple[str, ...] = ()
    """Models to ask, in order, when the main one cannot be reached or stays overloaded, by their litellm names."""

    options: tuple[ModelOptions, ...] = ()
    """Effort, max_output and temperature of some models, a [[models.options]] each; of several that fit, the last."""

    local_window: Annotated[int, Meta(ge=1024, le=100_000_000)] = 32_768
    """The largest window, in tokens, that a local server is asked for where it lets us choose (Ollama's num_ctx)."""


class LimitSettings(Struct, frozen=True):
    requests: Count = 100
    """Requests that one prompt may make, those of its sub-tasks included; 0 means no limit."""

    ask_at_cost: Dollars = 2.0
    """Dollars after which a turn asks once if it may go on, without a known price half of requests; 0 never asks."""

    turn_tokens: Count = 0
    """Tokens that one turn may use; 0 means no limit."""

    session_tokens: Count = 0
    """Tokens that one session may use; 0 means no limit."""

    turn_cost: Dollars = 0.0
    """Dollars that one turn may cost; 0 means no limit. Models with unknown pricing are then refused."""

    session_cost: Dollars = 0.0
    """Dollars that one session may cost; 0 means no limit. Models with unknown pricing are then refused."""

    repeat: Count = 100
    """How often an answer may repeat the same line or letters before it is stopped; 0 means no limit."""

    turns: Count = 0
    """Turns that may run without the person; 0 means no limit."""


class CommandsSettings(Struct, frozen=True):
    ask: Literal["outside", "always"] = "outside"
    """Which commands of the model are asked about: outside (those that no full trial view contains), or always."""

    timeout: Annotated[float, Meta(ge=1.0, le=86_400.0)] = 120.0
    """Seconds that a command of the model may take; the person's have no limit."""

    output_tokens: Annotated[int, Meta(ge=100, le=100_000)] = 2000
    """Tokens of a command's output, head and tail, that the model gets."""


class CheckCommand(Struct, frozen=True, forbid_unknown_fields=True):
    """Run on the `proposed` or the `applied` state.

    It runs only if a changed file matches `files`, a list of globs (None: all files; a leading `!` excludes).
    `timeout` is in seconds and defaults to `commands.timeout`. A `slow` check runs by key, and before changes
    are applied automatically.
    """

    name: Annotated[str, Meta(pattern=r"^[^\x00-\x1f\x7f]{1,40}$")]
    command: Annotated[str, Meta(pattern=r"\S", max_length=10_000)]
    when: Literal["proposed", "applied"] = "proposed"
    files: Globs = ()
    timeout: Annotated[float, Meta(ge=1.0, le=86_400.0)] | None = None
    slow: bool = False
    place: Annotated[str, Meta(pattern=r"^[\w.-]{0,40}$")] = ""


class PlaceSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """`run` reaches the place: `{command}` is one word of it, `{view}` the path of the copy. `copy` is how the folder
    gets there. `model`: whether the model may run commands there."""

    name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9][\w.-]{0,39}$")]
    run: Annotated[str, Meta(pattern=r"^ *[^\x00-\x20\x7f][^\x00-\x1f\x7f]*\Z", max_length=4_096)]
    kind: Literal["command"] = "command"
    copy: Literal["mount", "rsync", "bundle"] = "mount"
    model: bool = False


class ChecksSettings(Struct, frozen=True):
    commands: tuple[CheckCommand, ...] = ()
    """Tests, linters and the like, a [[checks.commands]] each; with none, those that are found are offered once."""

    run: Literal["proposed", "none"] = "proposed"
    """Run them on every change that is proposed, in a trial view; or only by key."""

    repairs: Annotated[int, Meta(ge=0, le=20)] = 2
    """How often in a turn the model is asked again for what the checks found."""


class TrialSettings(Struct, frozen=True):
    tools: tuple[str, ...] = ()
    """More folders that commands may read, absolute."""

    env: tuple[str, ...] = ()
    """More variables that commands see, by name or pattern; those that may hold a key only by their full name."""

    reveal: Globs = ()
    """Secret-looking files of the workspace that commands may read."""

    network: tuple[str, ...] = ()
    """Hosts that commands may reach through a proxy, by name, on port 443; HOST:PORT for another port."""

    memory: Annotated[int, Meta(ge=67_108_864)] = 4_294_967_296
    """Bytes of memory that the programs of a command may take together; what they share counts once."""

    processes: Annotated[int, Meta(ge=8)] = 512
    """Programs that a command may run at the same time."""

    kept: Count = 2_147_483_648
    """Bytes that builds and linters may keep on disk for their next run in a view of a folder; 0 keeps nothing."""


class ToolSettings(Struct, frozen=True):
    off: tuple[str, ...] = ()
    """Tools that the model does not get, by their names."""

    web: bool = False
    """The model can ask to read pages of the web as text. You are asked about each host."""


class PermissionSettings(Struct, frozen=True):
    deny: tuple[str, ...] = ()
    """Calls that are never done: a tool, or tool(pattern) for the paths, patterns or commands that it is about."""

    ask: tuple[str, ...] = ()
    """Calls that the person is asked about first, unless denied."""

    allow: tuple[str, ...] = ()
    """Calls that are done without asking, unless one of the others says otherwise."""


class HookSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """It gets a JSON object on standard input. `matcher` is an expression for names of tools or, at
    `SessionStart`, for its source; "" fits all. `timeout` is in seconds."""

    event: HookEvent
    command: Annotated[str, Meta(pattern=r"\S", max_length=10_000)]
    matcher: Annotated[str, Meta(max_length=1_000)] = ""
    timeout: Annotated[float, Meta(ge=1.0, le=600.0)] = 60.0
    enabled: bool = True


class ServerSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """A program (`command`), or an address (`url`) with `headers`. `${NAME}` and `${NAME:-default}` are
    variables of the environment. A server that is not `enabled` is not started, and its tools are not
    offered."""

    command: Annotated[str, Meta(max_length=4_096)] = ""
    args: Annotated[tuple[str, ...], Meta(max_length=200)] = ()
    env: dict[str, str] = {}
    url: Annotated[str, Meta(max_length=4_096)] = ""
    headers: dict[str, str] = {}
    enabled: bool = True
    #: Whether it may have the model answer texts of its own (sampling), within the limits of the turn.
    sampling: bool = False


class McpSettings(Struct, frozen=True):
    servers: dict[str, ServerSettings] = {}
    """Servers of the Model Context Protocol, a [mcp.servers.NAME] each: command, args, env; or url, headers."""

    inline_tools: Annotated[int, Meta(ge=0, le=200)] = 20
    """How many tools of servers a request describes in full; of more it has a line each, and the model asks for one."""

    timeout: Annotated[float, Meta(ge=1.0, le=86_400.0)] = 120.0
    """Seconds that a call of a server's tool may take."""


class UndoSettings(Struct, frozen=True):
    max_bytes: Count = 1_073_741_824
    """Bytes that the contents kept for undo may take on disk."""


class Settings(Struct, frozen=True):
    """Groups are nested: `settings.files.max_per_action`."""

    model: str = ""
    """The model that answers, by its litellm name; "" takes the one that is found at the first run."""

    planner_model: str = ""
    """Asked for a plan where the request names no file that exists; "" is the main model, "none" asks nobody."""

    protocol: Literal["auto", "tools", "structured"] = "auto"
    """How the model answers: tools (function calls), structured (one JSON object), or auto (as it can)."""

    effort: Effort = "auto"
    """How much the model thinks: auto (as the provider's own tool), none, low, medium, high, or max (its highest)."""

    max_output: Count = 0
    """The most tokens of one reply, thinking included; 0 leaves it to the provider."""

    temperature: Annotated[float, Meta(ge=-1.0, le=2.0)] = -1.0
    """How much chance a reply has, from 0 to 2; -1 leaves it to the provider. Models that think may not accept any."""

    max_steps: Annotated[int, Meta(ge=1, le=1000)] = 60
    """How many requests one turn may make."""

    request_timeout: Annotated[float, Meta(ge=1.0, le=3600.0)] = 120.0
    """Seconds to wait for the next piece of an answer."""

    outline_tokens: Annotated[int, Meta(ge=0, le=100_000)] = 1000
    """Size of the workspace's outline in the system prompt, in tokens; 0 leaves it out."""

    base_files: Globs = ("knowledge.md",)
    """Globs of files that are part of the system prompt."""

    files_api: Literal["off", "on"] = "off"
    """Upload loaded files to the provider's Files API instead of sending them as text: on or off."""

    mode: Mode = "edit"
    """The mode of a new session: ask (no changes, no commands), edit, or auto (applies checked changes)."""

    theme: FileName = "dark"
    """The colour theme: a file in themes/ without its ending. Unless set, a light terminal gets the light one."""

    notify: str = ""
    """A command that reports, with a message as its last argument, what happens while you are away."""

    keys: Literal["default", "vim"] = "default"
    """The set of keys."""

    hooks: dict[str, HookSettings] = {}
    """Commands of yours that run at events, a [hooks.NAME] each: event, command; matcher, timeout."""

    places: tuple[PlaceSettings, ...] = ()
    """Containers, hosts and queues in which commands and checks can run, a [[places]] each: name, run, copy; model."""

    files: FilesSettings = FilesSettings()
    known: KnownSettings = KnownSettings()
    context: ContextSettings = ContextSettings()
    instructions: InstructionsSettings = InstructionsSettings()
    bundling: BundlingSettings = BundlingSettings()
    review: ReviewSettings = ReviewSettings()
    screen: ScreenSettings = ScreenSettings()
    session: SessionSettings = SessionSettings()
    remote: RemoteSettings = RemoteSettings()
    start: StartSettings = StartSettings()
    subtasks: SubTaskSettings = SubTaskSettings()
    models: ModelsSettings = ModelsSettings()
    limits: LimitSettings = LimitSettings()
    undo: UndoSettings = UndoSettings()
    commands: CommandsSettings = CommandsSettings()
    checks: ChecksSettings = ChecksSettings()
    trial: TrialSettings = TrialSettings()
    tools: ToolSettings = ToolSettings()
    permissions: PermissionSettings = PermissionSettings()
    mcp: McpSettings = McpSettings()


Tables = dict[str, ServerSettings] | dict[str, HookSettings]
Value = str | int | float | bool | tuple[str | CheckCommand | ModelOptions | PlaceSettings, ...] | Tables


class SettingEntry(msgspec.Struct, frozen=True):
    """Its dotted key, its msgspec type and its default."""

    key: str
    type: Any
    default: Value


@cache
def entries() -> Mapping[str, SettingEntry]:
    """By dotted key, in schema order."""
    found: dict[str, SettingEntry] = {}
    for field in msgspec.structs.fields(Settings):
        if isinstance(field.default, msgspec.Struct):
            for inner in msgspec.structs.fields(field.default):
                key = f"{field.name}.{inner.name}"
                found[key] = SettingEntry(key, inner.type, _default(inner))
        else:
            found[field.name] = SettingEntry(field.name, field.type, _default(field))
    return found


#: Settings of earlier versions and their types; `replaced` translates them.
RETIRED: Mapping[str, Any] = {"autonomy": Literal["manual", "assisted", "auto"], "auto_apply": bool}


def replaced(values: Mapping[str, Value]) -> dict[str, Value]:
    """With today's settings for those of earlier versions: the mode is `auto` only if both old settings
    allowed it."""
    found = {key: value for key, value in values.items() if key not in RETIRED}
    if len(found) < len(values):
        both = values.get("autonomy") == "auto" and values.get("auto_apply") is True
        found.setdefault("mode", "auto" if both else "edit")
    if autonomy := values.get("autonomy"):
        found.setdefault("subtasks.begin", "ticked" if autonomy == "assisted" else autonomy)
    return found


def _type(key: str) -> Any:
    return RETIRED[key] if key in RETIRED else entries()[key].type


def _default(field: Any) -> Value:
    return field.default if field.default is not msgspec.NODEFAULT else field.default_factory()


@cache
def groups() -> frozenset[str]:
    """`files`, `context`, …"""
    return frozenset(key.partition(".")[0] for key in entries() if "." in key)


def checked(key: str, value: object) -> Value:
    """Raises ValueError with the expected type as its message."""
    try:
        found = msgspec.convert(value, _type(key))
    except msgspec.ValidationError:
        raise ValueError(wanted(key)) from None
    if isinstance(found, float) and not math.isfinite(found):
        raise ValueError(wanted(key))
    return found


def from_words(key: str, words: str) -> Value:
    """`8`, `true`, `dark`, `a.md,b.md` or `["a.md", "b.md"]`. Raises ValueError."""
    kind = msgspec.inspect.type_info(_type(key))
    match kind:
        case msgspec.inspect.VarTupleType():
            return checked(key, _list(key, words))
        case msgspec.inspect.BoolType():
            return checked(key, {"true": True, "false": False}.get(words.strip().lower()))
        case msgspec.inspect.IntType() | msgspec.inspect.FloatType():
            return checked(key, _number(words))
        case msgspec.inspect.DictType():
            return checked(key, _json(key, words))
        case _:
            return checked(key, words)


def wanted(key: str) -> str:
    """As the end of a sentence: `a whole number from 1 to 100`."""
    match msgspec.inspect.type_info(_type(key)):
        case msgspec.inspect.BoolType():
            return "true or false"
        case msgspec.inspect.IntType(ge=low, le=high):
            return f"a whole number {_range(low, high)}"
        case msgspec.inspect.FloatType(ge=low, le=high):
            return f"a number {_range(low, high)}"
        case msgspec.inspect.LiteralType(values=values):
            return "one of " + ", ".join(f'"{value}"' for value in values)
        case msgspec.inspect.VarTupleType(item_type=msgspec.inspect.StructType(cls=cls)) if (
            cls is ModelOptions
        ):
            return 'tables with name and options, such as [{name = "openai/*", effort = "high"}]'
        case msgspec.inspect.VarTupleType(item_type=msgspec.inspect.StructType(cls=cls)) if (
            cls is PlaceSettings
        ):
            return 'tables with name and run, such as [{name = "gpu", run = "ssh gpu {command}", copy = "rsync"}]'
        case msgspec.inspect.VarTupleType(item_type=msgspec.inspect.StructType()):
            return 'tables with name and command, such as [{name = "tests", command = "pytest -q"}]'
        case msgspec.inspect.VarTupleType(item_type=item):
            return f'a list of {_kind_of(item)}, such as ["a.md", "b.md"]'
        case msgspec.inspect.DictType(value_type=msgspec.inspect.StructType(cls=cls)) if cls is HookSettings:
            return 'tables by name with event and command, such as {lint = {event = "Applied", command = "make lint"}}'
        case msgspec.inspect.DictType():
            return 'tables by name with command or url, such as {time = {command = "uvx", args = ["mcp-server-time"]}}'
        case msgspec.inspect.StrType(pattern=str()):
            return "the name of a file, without a folder"
        case _:
            return "text in quotes"


def _kind_of(item: msgspec.inspect.Type) -> str:
    match item:
        case msgspec.inspect.StrType(max_length=None, pattern=str() as pattern):
            return "patterns inside the workspace" if "*/" in pattern else "file names without folders"
    return "text in quotes"


def default_values() -> dict[str, Value]:
    return {key: entry.default for key, entry in entries().items()}


def build(values: Mapping[str, Value]) -> Settings:
    """Missing keys get their defaults."""
    top: dict[str, Any] = {}
    inner: dict[str, dict[str, Value]] = {}
    for key, value in values.items():
        group, _, name = key.rpartition(".")
        if group:
            inner.setdefault(group, {})[name] = value
        else:
            top[key] = value
    plain = Settings()
    for group, changed in inner.items():
        top[group] = msgspec.structs.replace(getattr(plain, group), **changed)
    return msgspec.structs.replace(plain, **top)


def _range(low: float | None, high: float | None) -> str:
    if high is None:
        return f"from {low:g}"
    return f"from {low} to {high}"


def _number(words: str) -> object:
    text = words.strip().replace("_", "")
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return words


def _list(key: str, words: str) -> object:
    text = words.strip()
    if not text.startswith("["):
        return [part.strip() for part in text.split(",") if part.strip()]
    return _json(key, text)


def _json(key: str, text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        raise ValueError(wanted(key)) from None
