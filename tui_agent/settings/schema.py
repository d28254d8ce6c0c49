"""Schema of all settings: key, type, range and default; validation and parsing by dotted key.

A test keeps `config/settings.toml`, the user's reference, consistent with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

Effort = Literal["auto", "none", "low", "medium", "high", "max"]
#: How much a turn may do without the user; a session changes it by key.
Mode = Literal["ask", "edit", "auto"]
#: `BeforeApply`, `ChangesProposed` and `Applied` are ours, the others the most used agent's.
HookEvent = Literal[
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "PostToolUseFailure",
    "PreCompact",
    "PostCompact",
    "ChangesProposed",
    "BeforeApply",
    "Applied",
    "Stop",
    "StopFailure",
    "SubagentStart",
    "SubagentStop",
    "Notification",
    "SessionEnd",
]
Share = Annotated[float, Meta(ge=0.05, le=1.0)]
Count = Annotated[int, Meta(ge=0)]
Dollars = Annotated[float, Meta(ge=0.0)]
FileName = Annotated[str, Meta(pattern=r"^(?!\.{1,2}$)[^/\\\x00-\x1f\x7f]{1,255}$")]
#: For paths inside the workspace.
Glob = Annotated[str, Meta(pattern=r"^(?![/~])(?!(?:[^\x00]*/)?\.\.(?:/|$))[^\x00]+$")]
FileNames = tuple[FileName, ...]
Globs = tuple[Glob, ...]


class FilesSettings(Struct, frozen=True):
    max_per_action: Annotated[int, Meta(ge=1, le=1000)] = 20
    """Maximum files that a pattern may match; if more match, the next pattern is tried."""

    pattern_timeout: Annotated[float, Meta(ge=0.05, le=60.0)] = 2.0
    """Maximum seconds of one pattern search."""


class KnownSettings(Struct, frozen=True):
    max_files: Annotated[int, Meta(ge=1, le=100_000)] = 500
    """Maximum files that are remembered as seen by the model."""


class ContextSettings(Struct, frozen=True):
    window: Annotated[int, Meta(ge=0, le=100_000_000)] = 0
    """The model's context window in tokens; 0 for the known size, or 32,000 if it is unknown."""

    reset_at: Share = 0.8
    """Share of the window at which files are removed from the prompt."""

    reset_to: Share = 0.5
    """Approximate share of the window after files were removed; below reset_at."""

    condense_at: Share = 0.9
    """Share of the window at which older messages are summarised."""

    keep_on_failure: Share = 0.75
    """Share of the messages, newest first, that is kept if summarising fails."""


class InstructionsSettings(Struct, frozen=True):
    names: FileNames = ("AGENTS.md", "TUI_AGENT.md", "KODELET.md", "CLAUDE.md")
    """Names of instruction files; the first existing one in each folder is used."""

    exclude: Globs = ()
    """Globs of instruction files to ignore."""

    max_bytes: Annotated[int, Meta(ge=0, le=16_777_216)] = 65_536
    """Maximum bytes of an instruction file; larger ones are ignored."""


class BundlingSettings(Struct, frozen=True):
    enabled: bool = True
    """After an apply, send related files of the changed files with the next request."""

    imports: bool = True
    """Bundle the imports of a changed file."""

    tests: bool = True
    """Bundle the tests of a changed file."""

    max_files: Annotated[int, Meta(ge=0, le=100)] = 5
    """Maximum files in a bundle."""

    depth: Annotated[int, Meta(ge=1, le=5)] = 1
    """Maximum number of imports between a changed file and a bundled file."""


class ReviewSettings(Struct, frozen=True):
    near_threshold: Annotated[float, Meta(ge=0.5, le=1.0)] = 0.9
    """Minimum similarity of a place to the text of an edit, from 0 to 1; equal ends allow twice the difference."""


class ScreenSettings(Struct, frozen=True):
    plain: bool = False
    """Plain screen for screen readers and braille displays: one pane at a time, in lines of text."""

    bell_after: Annotated[float, Meta(ge=0.0, le=86_400.0)] = 20.0
    """Minimum seconds of a turn that rings the bell if it ends while you are away; 0 for never."""


class SessionSettings(Struct, frozen=True):
    linger: Annotated[int, Meta(ge=0, le=604_800)] = 1800
    """Seconds that an idle session without a terminal is kept; 0 ends it when its terminal closes."""


#: A destination of ssh; one that begins with `-` would be an option.
HostName = Annotated[str, Meta(pattern=r"^[^\s\x00-\x1f\x7f-][^\s\x00-\x1f\x7f]{0,254}\Z")]


class RemoteSettings(Struct, frozen=True):
    hosts: tuple[HostName, ...] = ()
    """SSH hosts whose running sessions `tui-agent ps` and the inbox also list."""


class StartSettings(Struct, frozen=True):
    keep_ready: bool = True
    """Keep a process ready for a fast next start (about 100 MB of memory)."""

    idle: Annotated[int, Meta(ge=1, le=604_800)] = 1800
    """Seconds without a start or a session after which this process ends."""


class SubTaskSettings(Struct, frozen=True):
    begin: Literal["manual", "ticked", "auto"] = "ticked"
    """How sub-tasks begin: manual (each by key), ticked (the ticked ones by key), or auto (marked ones at once)."""

    max_parallel: Annotated[int, Meta(ge=1, le=32)] = 3
    """Maximum sub-tasks that run at the same time."""

    max_depth: Annotated[int, Meta(ge=0, le=5)] = 1
    """Maximum depth of nested sub-tasks; 0 disables sub-tasks."""

    max_per_turn: Annotated[int, Meta(ge=1, le=1000)] = 8
    """Maximum sub-tasks of one turn; further ones are refused by name."""

    max_seconds: Count = 1800
    """Maximum seconds of one sub-task; 0 for no limit."""

    max_tokens: Count = 0
    """Maximum tokens of one sub-task; 0 for no limit."""

    max_cost: Dollars = 0.0
    """Maximum cost of one sub-task in dollars; 0 for no limit."""

    place: Annotated[str, Meta(pattern=r"^[\w.-]{0,40}$")] = ""
    """Place in which sub-tasks run, by its name; "" for this machine."""

    silent_after: Annotated[int, Meta(ge=1)] = 30
    """Seconds without output after which a sub-task is shown as silent."""


class ModelOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """For models whose full name matches the glob `name`. Missing options default to those of all models."""

    name: Annotated[str, Meta(pattern=r"^[^\x00-\x1f\x7f]{1,200}$")]
    effort: Effort | None = None
    max_output: Count | None = None
    temperature: Annotated[float, Meta(ge=-1.0, le=2.0)] | None = None


class ModelsSettings(Struct, frozen=True):
    transport: Literal["auto", "litellm", "direct"] = "auto"
    """Connection to providers: direct, litellm, or auto (direct if possible, otherwise litellm)."""

    fallbacks: tuple[str, ...] = ()
    """Models to try in order if the main model is unreachable or overloaded, by their litellm names."""

    options: tuple[ModelOptions, ...] = ()
    """Effort, max_output and temperature by model, as [[models.options]] tables; the last matching table is used."""

    local_window: Annotated[int, Meta(ge=1024, le=100_000_000)] = 32_768
    """Maximum window in tokens that is requested from a local server (Ollama's num_ctx)."""


class LimitSettings(Struct, frozen=True):
    requests: Count = 100
    """Maximum requests per prompt, including its sub-tasks; 0 for no limit."""

    ask_at_cost: Dollars = 2.0
    """Cost in dollars at which a turn asks once to continue; half of requests if the price is unknown; 0 for never."""

    turn_tokens: Count = 0
    """Maximum tokens of one turn; 0 for no limit."""

    session_tokens: Count = 0
    """Maximum tokens of one session; 0 for no limit."""

    turn_cost: Dollars = 0.0
    """Maximum cost of one turn in dollars; 0 for no limit. With a limit, models with unknown prices are refused."""

    session_cost: Dollars = 0.0
    """Maximum cost of one session in dollars; 0 for no limit. With a limit, models with unknown prices are refused."""

    repeat: Count = 100
    """Maximum repetitions of the same line or letters before a reply is stopped; 0 for no limit."""

    turns: Count = 0
    """Maximum consecutive turns without input from you; 0 for no limit."""


class CommandsSettings(Struct, frozen=True):
    ask: Literal["outside", "always"] = "outside"
    """Commands of the model that need your permission: outside (those without a full trial view), or always."""

    timeout: Annotated[float, Meta(ge=1.0, le=86_400.0)] = 120.0
    """Maximum seconds of a command of the model; your commands have no limit."""

    output_tokens: Annotated[int, Meta(ge=100, le=100_000)] = 2000
    """Maximum tokens of a command's output, head and tail, that are sent to the model."""


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
    """`run` reaches the place: `{command}` is one word of it, `{view}` the path of the copy; for kind `dask`
    it is the address of the scheduler. `copy` is how the folder gets there. `model`: whether the model
    may run commands there.
    """

    name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9][\w.-]{0,39}$")]
    run: Annotated[str, Meta(pattern=r"^ *[^\x00-\x20\x7f][^\x00-\x1f\x7f]*\Z", max_length=4_096)]
    kind: Literal["command", "dask"] = "command"
    copy: Literal["mount", "rsync", "bundle"] = "mount"
    model: bool = False


class ChecksSettings(Struct, frozen=True):
    commands: tuple[CheckCommand, ...] = ()
    """Tests and linters, as [[checks.commands]] tables; if there are none, detected checks are offered once."""

    run: Literal["proposed", "none"] = "proposed"
    """When checks run: proposed (on each proposed change, in a trial view), or none (only by key)."""

    repairs: Annotated[int, Meta(ge=0, le=20)] = 2
    """Maximum times in a turn that the model is asked to correct failed checks."""


class TrialSettings(Struct, frozen=True):
    tools: tuple[str, ...] = ()
    """Absolute paths of additional folders that commands may read."""

    env: tuple[str, ...] = ()
    """Additional environment variables for commands, by name or pattern; names of keys and tokens in full."""

    reveal: Globs = ()
    """Secret-looking files of the workspace that commands may read."""

    network: tuple[str, ...] = ()
    """Names of hosts that commands may reach through a proxy, on port 443; HOST:PORT for another port."""

    memory: Annotated[int, Meta(ge=67_108_864)] = 4_294_967_296
    """Maximum memory of all programs of a command together, in bytes; shared memory counts once."""

    processes: Annotated[int, Meta(ge=8)] = 512
    """Maximum programs of a command at the same time."""

    kept: Count = 2_147_483_648
    """Maximum bytes of build and linter caches that are kept for the next run; 0 keeps none."""


class ToolSettings(Struct, frozen=True):
    off: tuple[str, ...] = ()
    """Names of tools that are withheld from the model."""

    web: bool = False
    """Let the model read web pages as text. You are asked about each host."""


class PermissionSettings(Struct, frozen=True):
    deny: tuple[str, ...] = ()
    """Calls to refuse: tool, or tool(pattern) for its paths, patterns or commands."""

    ask: tuple[str, ...] = ()
    """Calls that need your permission, unless denied."""

    allow: tuple[str, ...] = ()
    """Calls that need no permission, unless denied or listed in ask."""


class HookSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """`matcher` is an expression for names of tools; "" fits all. `rule` narrows it to calls such as
    `Bash(git *)`. A hook in the background delays nothing. `timeout` is in seconds.
    """

    event: HookEvent
    command: Annotated[str, Meta(pattern=r"\S", max_length=10_000)]
    matcher: Annotated[str, Meta(max_length=1_000)] = ""
    timeout: Annotated[float, Meta(ge=1.0, le=600.0)] = 60.0
    enabled: bool = True
    rule: Annotated[str, Meta(max_length=1_000)] = ""
    background: bool = False


class ServerSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """A program (`command`), or an address (`url`) with `headers`. `${NAME}` and `${NAME:-default}` are
    variables of the environment. Unless `enabled`, the server is not started, and its tools are not
    offered.
    """

    command: Annotated[str, Meta(max_length=4_096)] = ""
    args: Annotated[tuple[str, ...], Meta(max_length=200)] = ()
    env: dict[str, str] = {}
    url: Annotated[str, Meta(max_length=4_096)] = ""
    headers: dict[str, str] = {}
    enabled: bool = True
    #: Whether the model answers texts of the server (sampling), within the limits of the turn.
    sampling: bool = False


class McpSettings(Struct, frozen=True):
    servers: dict[str, ServerSettings] = {}
    """Servers of the Model Context Protocol, as [mcp.servers.NAME] tables: command, args, env; or url, headers."""

    inline_tools: Annotated[int, Meta(ge=0, le=200)] = 20
    """Maximum server tools with full schemas in a request; if there are more, each has one line."""

    timeout: Annotated[float, Meta(ge=1.0, le=86_400.0)] = 120.0
    """Maximum seconds of a server tool call."""


class UndoSettings(Struct, frozen=True):
    max_bytes: Count = 1_073_741_824
    """Maximum bytes on disk for undo."""


class Settings(Struct, frozen=True):
    """Groups are nested: `settings.files.max_per_action`."""

    model: str = ""
    """The model, by its litellm name; "" selects a model at the first start."""

    planner_model: str = ""
    """Model that plans requests without an existing file name; "" for the main model, "none" for no plan."""

    protocol: Literal["auto", "tools", "structured"] = "auto"
    """Answer format: tools (function calls), structured (one JSON object), or auto (depends on the model)."""

    effort: Effort = "auto"
    """How much the model thinks: auto (the provider's default), none, low, medium, high, or max."""

    max_output: Count = 0
    """Maximum tokens of one reply, including thinking; 0 for the provider's default."""

    temperature: Annotated[float, Meta(ge=-1.0, le=2.0)] = -1.0
    """Randomness of replies, from 0 to 2; -1 for the provider's default. Thinking models may reject a value."""

    max_steps: Annotated[int, Meta(ge=1, le=1000)] = 60
    """Maximum requests of one turn."""

    request_timeout: Annotated[float, Meta(ge=1.0, le=3600.0)] = 120.0
    """Maximum seconds between two parts of a reply."""

    outline_tokens: Annotated[int, Meta(ge=0, le=100_000)] = 1000
    """Maximum tokens of the workspace outline in the system prompt; 0 omits it."""

    base_files: Globs = ("knowledge.md",)
    """Globs of files to include in the system prompt."""

    files_api: Literal["off", "on"] = "off"
    """Upload loaded files to the provider's Files API instead of sending them as text: on or off."""

    mode: Mode = "edit"
    """Mode of a new session: ask (no changes, no commands), edit, or auto (applies changes that pass all checks)."""

    theme: FileName = "dark"
    """Colour theme: the name of a file in themes/. The default for a light terminal is light."""

    notify: str = ""
    """Command that notifies you while you are away; its last argument is the message."""

    keys: Literal["default", "vim"] = "default"
    """Key set."""

    hooks: dict[str, HookSettings] = {}
    """Commands that run at events, as [hooks.NAME] tables: event, command, matcher, timeout."""

    places: tuple[PlaceSettings, ...] = ()
    """Containers, hosts and queues for commands and checks, as [[places]] tables: name, run, copy, model."""

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
    """`type` is msgspec's."""

    key: str
    type: Any
    default: Value


@cache
def entries() -> Mapping[str, SettingEntry]:
    """In schema order."""
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
    """Replaces settings of earlier versions: the mode is `auto` only if both old settings allowed it."""
    found = {key: value for key, value in values.items() if key not in RETIRED}
    if len(found) < len(values):
        both = values.get("autonomy") == "auto" and values.get("auto_apply") is True
        found.setdefault("mode", "auto" if both else "edit")
    if autonomy := values.get("autonomy"):
        found.setdefault("subtasks.begin", "ticked" if autonomy == "assisted" else autonomy)
    return found


def _default(field: Any) -> Value:
    return field.default if field.default is not msgspec.NODEFAULT else field.default_factory()


@cache
def groups() -> frozenset[str]:
    return frozenset(key.partition(".")[0] for key in entries() if "." in key)


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
