"""JSON schema enforcement for replies."""

from __future__ import annotations

from typing import Any, Literal

#: Enforcement methods: OpenAI's, llama.cpp's older one, vLLM's older one, none; "" is untested.
SchemaForm = Literal["", "json_schema", "json_object", "guided_json", "none"]


def response_format(schema: dict[str, Any], form: SchemaForm, strict: bool = True) -> dict[str, Any]:
    if form == "json_object":
        return {"type": "json_object", "schema": schema}
    return {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema, "strict": strict}}


def is_strict(schema: Any) -> bool:
    """Whether every object requires all its properties and allows no others."""
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
