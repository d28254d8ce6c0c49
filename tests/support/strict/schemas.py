"""The subsets of JSON Schema that providers accept; each check yields what a schema breaks, in the provider's words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from support.strict.names import names

_OPENAI_REFUSED = names("""
    allOf not dependentRequired dependentSchemas if then else patternProperties propertyNames unevaluatedProperties
    unevaluatedItems contains minContains maxContains uniqueItems oneOf minProperties maxProperties
""")
_ANTHROPIC_REFUSED = {
    "array": names("maxItems minItems uniqueItems contains minContains maxContains prefixItems"),
    "object": names("""
    minProperties maxProperties patternProperties propertyNames dependentRequired dependentSchemas
        unevaluatedProperties
"""),
    "string": names("minLength maxLength"),
}
_NUMBERS = names("minimum maximum exclusiveMinimum exclusiveMaximum multipleOf")
_GEMINI_KNOWN = names("""
    type format title description nullable enum maxItems minItems properties required minProperties maxProperties
    minLength maxLength pattern example anyOf propertyOrdering default items minimum maximum
""")
_GEMINI_TYPES = names("string number integer boolean array object null type_unspecified")


def children(schema: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The schemas inside of a schema, each under its path."""
    for holder in ("properties", "$defs", "definitions"):
        for name, child in (schema.get(holder) or {}).items():
            yield f"{holder}.{name}", child
    for holder in ("items", "additionalProperties", "not"):
        if isinstance(schema.get(holder), dict):
            yield holder, schema[holder]
    for holder in ("anyOf", "oneOf", "allOf"):
        for index, child in enumerate(schema.get(holder) or ()):
            yield f"{holder}.{index}", child


def openai(schema: Any, context: tuple[str, ...] = ()) -> Iterator[str]:
    """What a strict schema of OpenAI breaks."""
    where = (
        "In context=("
        + ", ".join(f"'{word}'" for word in context)
        + ("," if len(context) == 1 else "")
        + "), "
    )
    if not isinstance(schema, dict):
        yield f"{where}schema must be a dict."
        return
    if not context and schema.get("type") != "object":
        yield f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{schema.get('type')}\"'."
        return
    for word in sorted(_OPENAI_REFUSED & set(schema)):
        yield f"{where}'{word}' is not permitted."
    if "$ref" in schema and len(schema) > 1:
        extra = next(key for key in schema if key != "$ref")
        yield f"{where}$ref cannot have keywords {{'{extra}'}}."
    if schema.get("type") == "object" or "properties" in schema:
        if schema.get("additionalProperties") is not False:
            yield f"{where}'additionalProperties' is required to be supplied and to be false."
        missing = [
            name for name in schema.get("properties") or {} if name not in (schema.get("required") or ())
        ]
        if missing:
            yield (
                f"{where}'required' is required to be supplied and to be an array including every key in properties."
                f" Missing '{missing[0]}'."
            )
    if schema.get("type") == "array" and "items" not in schema:
        yield f"{where}array schema missing items."
    for path, child in children(schema):
        if not path.startswith("additionalProperties"):
            yield from openai(child, (*context, *path.split(".")))


def anthropic(schema: Any) -> Iterator[str]:
    """What a schema of `output_config.format` breaks."""
    if not isinstance(schema, dict):
        yield "Input should be a valid dictionary"
        return
    kinds = schema.get("type")
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        if kind in ("integer", "number"):
            refused = _NUMBERS & set(schema)
        else:
            refused = _ANTHROPIC_REFUSED.get(str(kind), frozenset()) & set(schema)
        for word in sorted(refused):
            if word != "minItems" or schema[word] not in (0, 1):
                yield f"For '{kind}' type, property '{word}' is not supported"
        if kind == "object" and schema.get("additionalProperties") is not False:
            yield "For 'object' type, 'additionalProperties' must be explicitly set to false"
    for word in ("oneOf", "not", "if"):
        if word in schema:
            yield f"Schema type '{word}' is not supported"
    for _, child in children(schema):
        if isinstance(child, dict):
            yield from anthropic(child)


def gemini(schema: Any, path: str) -> Iterator[tuple[str, str]]:
    """What function parameters in Gemini's own schema break: the path, and the words."""
    if not isinstance(schema, dict):
        yield (
            path,
            f"Invalid value at '{path}' (type.googleapis.com/google.ai.generativelanguage.v1beta.Schema)",
        )
        return
    for key in schema:
        if key not in _GEMINI_KNOWN:
            yield (
                path,
                f"Invalid JSON payload received. Unknown name \"{key}\" at '{path}': Cannot find field.",
            )
    kind = schema.get("type")
    if isinstance(kind, list):
        yield (
            path,
            (
                'Invalid JSON payload received. Unknown name "type" at '
                f"'{path}': Proto field is not repeating, cannot start list."
            ),
        )
        return
    if kind is not None and str(kind).lower() not in _GEMINI_TYPES:
        yield (
            path,
            f"Invalid value at '{path}.type' (type.googleapis.com/google.ai.generativelanguage.v1beta.Type),"
            f' "{kind}"',
        )
    if any(not isinstance(value, str) for value in schema.get("enum") or ()):
        yield path, f"Invalid value at '{path}.enum[0]' (TYPE_STRING), {schema['enum'][0]}"
    full = f"* GenerateContentRequest.{path}"
    if str(kind).lower() == "array" and "items" not in schema:
        yield path, f"{full}.items: missing field.\n"
    if str(kind).lower() == "object" and schema.get("properties") == {}:
        yield path, f"{full}.properties: should be non-empty for OBJECT type\n"
    for index, name in enumerate(schema.get("required") or ()):
        if name not in (schema.get("properties") or {}):
            yield path, f"{full}.required[{index}]: property is not defined\n"
    for name, child in (schema.get("properties") or {}).items():
        yield from gemini(
            child, f"{path}.properties[0].value" if _plain(child) else f"{path}.properties[{name}]"
        )
    if isinstance(schema.get("items"), dict):
        yield from gemini(schema["items"], f"{path}.items")
    for index, child in enumerate(schema.get("anyOf") or ()):
        yield from gemini(child, f"{path}.any_of[{index}]")


def _plain(schema: Any) -> bool:
    """Whether a schema breaks nothing by its own form, so that JSON's own path is named."""
    return isinstance(schema, dict) and not set(schema) <= _GEMINI_KNOWN


def moonshot(schema: Any, path: str = "") -> Iterator[str]:
    """What a function's parameters break in the subset that Kimi accepts."""
    place = path or "root"
    if not isinstance(schema, dict):
        return
    if not path and schema.get("type") != "object":
        yield 'tools.function.parameters.type is required and must be "object"'
        return
    wrong = ""
    reference = schema.get("$ref")
    if reference is not None and not str(reference).startswith(("#/$defs/", "#/definitions/")):
        wrong = "references must start with #/$defs/"
    elif reference is not None and len(schema) > 1:
        extra = next(key for key in schema if key != "$ref")
        wrong = f"conflicting keywords found after $ref expansion: {extra}"
    elif "anyOf" in schema and "type" in schema:
        wrong = "when using anyOf, type should be defined in anyOf items instead of the parent schema"
    elif isinstance(schema.get("items"), list):
        wrong = "tuple items are not supported"
    elif path and not {"type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const"} & set(schema):
        wrong = "type is not defined"
    if wrong:
        yield (
            "tools.function.parameters is not a valid moonshot flavored json schema, details: <At path"
            f" '{place}': {wrong}>"
        )
    for name, child in children(schema):
        yield from moonshot(child, f"{path}.{name}" if path else name)


def groq(schema: Any) -> Iterator[str]:
    """What a strict schema of Groq breaks."""
    if not isinstance(schema, dict):
        return
    if schema.get("type") == "object" and schema.get("additionalProperties") is not False:
        yield "`additionalProperties:false` must be set on every object"
    missing = [name for name in schema.get("properties") or {} if name not in (schema.get("required") or ())]
    if missing:
        yield (
            "`required` is required to be supplied and to be an array including every key in properties; missing"
            f" {missing}"
        )
    for _, child in children(schema):
        yield from groq(child)
