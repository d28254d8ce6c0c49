"""The shapes of replies and plans: one file for the request, for the functions and for checking."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from tui_agent.errors import SettingsError

Schema = dict[str, Any]

#: Function name → its one parameter and the property of a reply that has the same shape.
FUNCTIONS: dict[str, tuple[str, str]] = {
    "read_files": ("actions", "fileRequests"),
    "list_directory": ("requests", "directoryRequests"),
    "propose_changes": ("changes", "fileChanges"),
    "set_todos": ("todos", "todos"),
    "spawn_subtasks": ("subTasks", "subTasks"),
    "suggest_next": ("steps", "nextSteps"),
}
SEARCH = "search_text"
#: What providers that hold a model to a schema do not take in it.
_LOOSE_WORDS = frozenset({"minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum", "default"})


class Schemas(Struct, frozen=True):
    """The two shapes as their files have them."""

    response: Schema
    planning: Schema


def load(folder: Path) -> Schemas:
    """Read both schema files of a `config/` folder. Raises `SettingsError`, naming the file."""
    return Schemas(_read(folder / "response-schema.json"), _read(folder / "planning-schema.json"))


def _read(path: Path) -> Schema:
    try:
        value = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise SettingsError(f"{path} cannot be read ({error.strerror})", "put the file back") from error
    except msgspec.DecodeError as error:
        raise SettingsError(f"{path} is not valid JSON ({error})", "correct it or remove it") from error
    if not isinstance(value, dict) or not isinstance(value.get("properties"), dict):
        raise SettingsError(f"{path} is not the schema of an object", "give it `properties`")
    return value


def strict(schema: Schema) -> Schema:
    """The form that some providers want: every property required, optional ones nullable, no others."""
    result = {key: value for key, value in schema.items() if key not in _LOOSE_WORDS}
    if isinstance(result.get("items"), dict):
        result["items"] = strict(result["items"])
    if isinstance(result.get("properties"), dict):
        needed = result.get("required", [])
        result["properties"] = {
            name: strict(part) if name in needed else _nullable(strict(part))
            for name, part in result["properties"].items()
        }
        result["required"] = list(result["properties"])
        result["additionalProperties"] = False
    return result


def _nullable(part: Schema) -> Schema:
    result = {**part, "type": [part["type"], "null"]}
    if "enum" in part:
        result["enum"] = [*part["enum"], None]
    return result


def tools(schema: Schema) -> list[Schema]:
    """The function definitions of the `tools` dialect, in the shape of the OpenAI chat API."""
    found = [
        _function(name, part.get("description", ""), {parameter: _untold(part)}, [parameter])
        for name, (parameter, key) in FUNCTIONS.items()
        if (part := schema["properties"].get(key))
    ]
    if search := schema["properties"].get("searches", {}).get("items"):
        words = search.get("description", "")
        found.insert(2, _function(SEARCH, words, search["properties"], search.get("required", [])))
    return found


def _untold(part: Schema) -> Schema:
    """Without its description, which is given above it."""
    return {key: value for key, value in part.items() if key != "description"}


def _function(name: str, description: str, properties: Schema, required: Sequence[str]) -> Schema:
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters},
    }


def check(part: Schema, value: Any, at: str = "") -> list[str]:
    """What is wrong with `value`, a sentence each with the path to it (`at` is the path of `value` itself)."""
    try:
        return [
            f"{_place(at, error.instance_path)}: {_words(error.message)}."
            for error in _validator(msgspec.json.encode(part)).iter_errors(value)
        ]
    except (ValueError, RecursionError) as error:
        return [f"{at or 'the reply'}: cannot be checked ({error})."]


@lru_cache(maxsize=64)
def _validator(part: bytes) -> Any:
    import jsonschema_rs

    return jsonschema_rs.Draft202012Validator(msgspec.json.decode(part))


def _place(at: str, path: Sequence[str | int]) -> str:
    for step in path:
        at += f"[{step}]" if isinstance(step, int) else f".{step}" if at else str(step)
    return at or "the reply"


def _words(message: str, limit: int = 160) -> str:
    """The checker quotes the value, which may be a whole file: its end says what is wrong."""
    return message if len(message) <= limit else "…" + message[-limit:]
