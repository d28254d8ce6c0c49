"""Prompts and schemas sent to a model: the shipped files, overridden by the user's files, plus sections added
by a trusted workspace."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from tui_agent.settings.files import WORKSPACE_FOLDER, ConfigFault, read_own, reason_of
from tui_agent.settings.folders import config_folder

SYSTEM, PLANNING = "system-prompt.json", "planning-prompt.json"
RESPONSE_SCHEMA, PLANNING_SCHEMA = "response-schema.json", "planning-schema.json"
FILES = (SYSTEM, PLANNING, RESPONSE_SCHEMA, PLANNING_SCHEMA)
#: Key of the list of a prompt, and of the table of a schema.
_PARTS = {
    SYSTEM: "sections",
    PLANNING: "sections",
    RESPONSE_SCHEMA: "properties",
    PLANNING_SCHEMA: "properties",
}

Words = dict[str, Any]


class Prompts(Struct, frozen=True):
    """Prompts by file name; `faults` concern ignored files."""

    words: dict[str, Words]
    faults: tuple[ConfigFault, ...] = ()


def read_prompts(own: Path, workspace: Path | None = None) -> Prompts:
    """Reads the shipped files and applies the user's changes in `own`. A trusted `workspace` may add sections
    to prompts but not change any. Invalid files are ignored."""
    words: dict[str, Words] = {}
    faults: list[ConfigFault] = []
    for name in FILES:
        found = msgspec.json.decode((config_folder() / name).read_bytes())
        folders = [own, *([workspace / WORKSPACE_FOLDER] if workspace and _PARTS[name] == "sections" else [])]
        for folder in folders:
            value, why = _read(folder, name)
            why = why or _fault(value, found, name)
            if why:
                faults.append(ConfigFault(str(folder / name), why, "correct it or remove it"))
            else:
                found = _changed(found, value, _PARTS[name], only_adds=folder is not own)
        words[name] = found
    return Prompts(words, tuple(faults))


def _read(folder: Path, name: str) -> tuple[Any, str]:
    try:
        return msgspec.json.decode(read_own(folder, name)), ""
    except (FileNotFoundError, NotADirectoryError):
        return {}, ""
    except OSError as error:
        return None, f"the file cannot be read ({reason_of(error)})"
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return None, f"it is not valid JSON ({error})"
    except RecursionError:
        return None, "its brackets are nested too deeply"


def _fault(value: Any, shipped: Words, name: str) -> str:
    """The reason a file is invalid, or ""."""
    if not isinstance(value, dict):
        return "it is not a JSON object"
    for key, part in value.items():
        if key not in shipped and _PARTS[name] == "sections":
            return f"there is no `{key}` in it; there are {', '.join(shipped)}"
        if key in shipped and type(part) is not type(shipped[key]):
            kind = {dict: "an object", list: "a list", str: "text", bool: "true or false"}
            return f"`{key}` is not {kind.get(type(shipped[key]), 'of the right type')}"
    sections = value.get("sections", [])
    for section in sections if isinstance(sections, list) else ():
        if not (isinstance(section, dict) and all(isinstance(section.get(it), str) for it in ("id", "text"))):
            return "a section needs `id` and `text`"
    properties = value.get("properties", {})
    if any(not isinstance(part, dict) for part in properties.values()):
        return "a property is not a schema"
    if value and _PARTS[name] == "properties":
        import jsonschema_rs

        try:
            jsonschema_rs.meta.validate(value)
        except (jsonschema_rs.ValidationError, ValueError) as error:
            place = ".".join(map(str, getattr(error, "instance_path", ()))) or name
            return f"`{place}` is not valid in a JSON schema"
    return ""


def _changed(shipped: Words, value: Words, parts: str, *, only_adds: bool) -> Words:
    rest = {} if only_adds else {key: part for key, part in value.items() if key != parts}
    if parts == "properties":
        return {**shipped, **rest, parts: {**shipped[parts], **value.get(parts, {})}}
    return {**shipped, **rest, parts: _sections(shipped[parts], value.get(parts, ()), only_adds)}


def _sections(shipped: Sequence[Words], given: Sequence[Words], only_adds: bool) -> list[Words]:
    named = {section["id"]: section for section in given}
    there = {section.get("id") for section in shipped}
    kept = [
        section if only_adds else {**section, **named.get(section.get("id", ""), {})} for section in shipped
    ]
    return [*kept, *(section for section in given if section["id"] not in there)]
