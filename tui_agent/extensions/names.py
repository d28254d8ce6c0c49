"""Names of tools and models in the files of other agents, and their counterparts here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

READ, LIST, SEARCH, FIND = "read_files", "list_directory", "search_text", "find_files"
CHANGE, RUN, TODOS, TASKS, SKILL, PAGE = (
    "propose_changes",
    "run_command",
    "set_todos",
    "spawn_subtasks",
    "use_skill",
    "fetch_page",
)
#: Our tool by another agent's name, in lower case.
TOOLS: dict[str, str] = {
    **dict.fromkeys(("read", "view", "read_file", "read_many_files", "notebookread"), READ),
    **dict.fromkeys(("ls", "list", "list_dir"), LIST),
    **dict.fromkeys(("grep", "search", "search_file_content", "grep_search", "codebase_search"), SEARCH),
    **dict.fromkeys(("glob", "file_search"), FIND),
    **dict.fromkeys(("edit", "multiedit", "write", "notebookedit", "apply_patch", "patch"), CHANGE),
    **dict.fromkeys(("write_file", "replace", "write_to_file", "edit_file", "str_replace"), CHANGE),
    **dict.fromkeys(("bash", "shell", "run_shell_command", "execute", "execute_command", "exec"), RUN),
    **dict.fromkeys(("todowrite", "todoread", "update_plan", "todo"), TODOS),
    **dict.fromkeys(("task", "agent"), TASKS),
    "skill": SKILL,
    **dict.fromkeys(("webfetch", "web_fetch"), PAGE),
    **{
        name: name
        for name in (READ, LIST, SEARCH, FIND, CHANGE, RUN, TODOS, TASKS, SKILL, PAGE, "suggest_next")
    },
}
#: The most used name of a tool elsewhere, for hooks.
SHOWN: dict[str, str] = {
    READ: "Read",
    LIST: "LS",
    SEARCH: "Grep",
    FIND: "Glob",
    CHANGE: "Edit",
    RUN: "Bash",
    TODOS: "TodoWrite",
    TASKS: "Task",
    SKILL: "Skill",
    PAGE: "WebFetch",
}
#: Names of model families, which mean the configured model that has the word in its name.
FAMILIES = ("sonnet", "opus", "haiku", "gpt", "gemini", "flash", "pro", "mini")
INHERIT = ("", "inherit", "default")
_RULE = re.compile(r"([\w.*-]+)(?:\((.*)\))?", re.DOTALL)


class Narrowing(Struct, frozen=True):
    """The remaining tools, with the patterns of their commands or paths; an empty pattern allows all.

    `left_out` are the names without a counterpart.
    """

    tools: dict[str, tuple[str, ...]] = {}
    left_out: tuple[str, ...] = ()


def narrowing(written: Iterable[str]) -> Narrowing:
    """Reads names such as `Read`, `Bash(git add:*)`, `mcp__server` and `mcp__server__tool`."""
    tools: dict[str, tuple[str, ...]] = {}
    left_out = []
    for name in written:
        found = _RULE.fullmatch(name.strip())
        written_tool = found[1] if found else ""
        server = written_tool.removeprefix("mcp__")
        if server and server != written_tool:
            tool = server if "__" in server else f"{server}__*"
        else:
            tool = TOOLS.get(written_tool.lower())
        if found is None or tool is None:
            left_out.append(name.strip())
            continue
        pattern = (found[2] or "").strip()
        if pattern.endswith(":*"):
            pattern = f"{pattern[:-2]}*"
        before = tools.get(tool)
        tools[tool] = () if not pattern or before == () else (*(before or ()), pattern)
    return Narrowing(tools, tuple(left_out))


def model_of(written: str, configured: Sequence[str]) -> str | None:
    """Returns the configured model that a name means, "" for the one in use, or None if none is configured."""
    name = written.strip()
    if name.lower() in INHERIT:
        return ""
    if name in configured:
        return name
    last = [model for model in configured if model.rpartition("/")[2] == name]
    if not last and name.lower() in FAMILIES:
        last = [model for model in configured if name.lower() in model.lower()]
    return last[0] if last else None
