"""How a reply is held to a JSON schema."""

from __future__ import annotations

from typing import Any, Literal

#: How a reply is held to a schema: as OpenAI does it, by llama.cpp's older way, by vLLM's older way, or not at all;
#: "" is untried.
SchemaForm = Literal["", "json_schema", "json_object", "guided_json", "none"]


def response_format(schema: dict[str, Any], form: SchemaForm, strict: bool = True) -> dict[str, Any]:
    """What holds a reply to a schema, in the shape that a server takes."""
    if form == "json_object":
        return {"type": "json_object", "schema": schema}
    return {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema, "strict": strict}}


def is_strict(schema: Any) -> bool:
    """Whether every object in a schema names all its properties as required and allows no others."""
    match schema:
        case {"type": "object", "properties": properties}:
            closed = schema.get("additionalProperties") is False
            required = set(schema.get("required", ())) == set(properties)
            return closed and required and all(map(is_strict, schema.values()))
        case dict():
            return schema.get("type") != "object" and all(map(is_strict, schema.values()))
        case list():
            return all(map(is_strict, schema))
    return True
