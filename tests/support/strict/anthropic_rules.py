"""Rules of a request to Anthropic outside of its messages: fields, thinking, effort, schemas, functions, marks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from support.strict import schemas
from support.strict.names import names

if TYPE_CHECKING:
    from support.strict.anthropic import Anthropic

FIELDS = names("""
    model messages max_tokens system tools tool_choice stream temperature top_p top_k stop_sequences metadata
    thinking output_config cache_control service_tier container context_management mcp_servers inference_geo
    speed
""")
#: Models from the fifth generation on, which think unless told otherwise.
FIFTH = r"-(?:opus|sonnet|haiku|fable|mythos)-(?:[5-9]|preview)"
#: Models from 4.6 on, which decide themselves how much they think.
ADAPTIVE = rf"{FIFTH}|-(?:opus|sonnet|haiku)-4[-.][6-9]"
#: Models from 4.7 on, which refuse fixed budgets and sampling.
NO_BUDGETS = rf"{FIFTH}|-(?:opus|sonnet|haiku)-4[-.][7-9]"
ALWAYS_THINKING = r"fable|mythos|opus-5[-.]5"
NO_FORCED_TOOLS = r"fable-5[-.][1-9]|mythos-5[-.][1-9]|(?:opus|sonnet)-5[-.]5"
BINDING_BETA = "thinking-binding-controls-2026-08-01"
THINKING_DOC = (
    "Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking"
)
TOOL_FIELDS = names(
    """type name description input_schema cache_control strict eager_input_streaming input_examples defer_loading
    allowed_callers"""
)
TOOL_NAME = "^[a-zA-Z0-9_-]{1,128}$"


def cache_minimum(model: str) -> int:
    """The fewest tokens that a mark keeps."""
    for pattern, least in ((r"-5|preview", 512), (r"opus-4[-.]7", 2048), (r"opus-4[-.]8|sonnet-4", 1024)):
        if re.search(pattern.replace("-5|", r"-(?:opus|sonnet|haiku|fable|mythos)-5|"), model):
            return 1024 if re.search(r"sonnet-5$", model) else least
    return 4096


def output_maximum(model: str) -> int:
    """The most tokens that a reply may have."""
    if re.search(ADAPTIVE, model):
        return 128_000
    return 32_000 if re.search(r"opus-4(?:-1|-0|-2025\d+)?(?:-|$)(?!5)", model) else 64_000


def default_display(model: str) -> str:
    """Whether thinking is shown if the request does not say."""
    return "omitted" if re.search(NO_BUDGETS, model) else "summarized"


def check(dialect: Anthropic, body: dict[str, Any], beta: str) -> None:
    """Raises the refusal of the first rule that a request breaks."""
    if "output_format" in body:
        dialect.refuse("output_format: This field is deprecated. Use 'output_config.format' instead.")
    only(dialect, body, FIELDS, "")
    for name, value in body.items():
        if value is None:
            dialect.refuse(f"{name}: Input should be a valid value, not null")
    for name in ("model", "max_tokens", "messages"):
        if name not in body:
            dialect.refuse(f"{name}: Field required")
    model, limit = body["model"], body["max_tokens"]
    if not re.match(r"claude-", model):
        dialect.raise_fault("not_found", model)
    if not isinstance(limit, int) or isinstance(limit, bool):
        dialect.refuse("max_tokens: Input should be a valid integer")
    if limit < 1:
        dialect.refuse("max_tokens: Input should be greater than or equal to 1")
    if limit > output_maximum(model):
        dialect.refuse(
            f"max_tokens: {limit} > {output_maximum(model)}, which is the maximum allowed number of output tokens for"
            f" {model}"
        )
    if "stream" in body and not isinstance(body["stream"], bool):
        dialect.refuse("stream: Input should be a valid boolean")
    _check_thinking(dialect, body, beta)
    _check_sampling(dialect, body)
    _check_output(dialect, body)
    _check_tools(dialect, body)
    _check_marks(dialect, body)


def only(dialect: Any, given: dict[str, Any], known: Iterable[str], path: str) -> None:
    """Refuse names that are not known."""
    for name in given:
        if name not in known:
            dialect.refuse(f"{path}.{name}: Extra inputs are not permitted".lstrip("."))


def thinking_type(body: dict[str, Any]) -> str:
    return (body.get("thinking") or {}).get("type", "")


def _check_thinking(dialect: Anthropic, body: dict[str, Any], beta: str) -> None:
    thinking, model = body.get("thinking"), body["model"]
    if thinking is None:
        return
    kind = thinking.get("type")
    known = {
        "enabled": ("type", "budget_tokens", "display"),
        "adaptive": ("type", "display", "block_binding"),
        "disabled": ("type",),
        "between_tools": ("type", "display", "block_binding"),
    }
    if kind not in known:
        dialect.refuse(
            f"thinking: Input tag '{kind}' found using 'type' does not match any of the expected tags: 'adaptive',"
            " 'disabled', 'enabled'"
        )
    only(dialect, thinking, known[kind], f"thinking.{kind}")
    refused = (
        (kind == "enabled" and re.search(NO_BUDGETS, model))
        or (kind == "disabled" and re.search(rf"{ALWAYS_THINKING}|sonnet-5[-.]5", model))
        or (kind == "between_tools" and not re.search(r"sonnet-5[-.]5", model))
    )
    if refused:
        dialect.refuse(
            f'"thinking.type.{kind}" is not supported for this model. Use "thinking.type.adaptive" and'
            ' "output_config.effort" to control thinking behavior.'
        )
    if kind == "adaptive" and not re.search(ADAPTIVE, model):
        dialect.refuse("adaptive thinking is not supported on this model")
    if thinking.get("display", "omitted") not in ("omitted", "summarized"):
        dialect.refuse(f"thinking.{kind}.display: Input should be 'summarized' or 'omitted'")
    if "block_binding" in thinking and BINDING_BETA not in beta:
        dialect.refuse(f"thinking.{kind}.block_binding: Extra inputs are not permitted")
    if kind == "enabled":
        _check_budget(dialect, body, thinking.get("budget_tokens"))


def _check_budget(dialect: Anthropic, body: dict[str, Any], budget: Any) -> None:
    if budget is None:
        dialect.refuse("thinking.enabled.budget_tokens: Field required")
    if budget < 1024:
        dialect.refuse("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
    if budget >= body["max_tokens"]:
        dialect.refuse(
            f"`max_tokens` must be greater than `thinking.budget_tokens`. {THINKING_DOC}#max-tokens"
        )


def _check_sampling(dialect: Anthropic, body: dict[str, Any]) -> None:
    for name in ("temperature", "top_p", "top_k"):
        value = body.get(name)
        if value is None:
            continue
        if re.search(NO_BUDGETS, body["model"]):
            dialect.refuse(f"`{name}` is deprecated for this model.")
        if thinking_type(body) in ("enabled", "adaptive"):
            if name == "temperature" and value != 1:
                dialect.refuse(f"`temperature` may only be set to 1 when thinking is enabled. {THINKING_DOC}")
            if name == "top_k":
                dialect.refuse(f"`top_k` must be unset when thinking is enabled. {THINKING_DOC}")
            if name == "top_p" and value < 0.95:
                dialect.refuse(
                    "`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled."
                    f" {THINKING_DOC}"
                )
        if name == "temperature" and not 0 <= value <= 1:
            dialect.refuse("temperature: range: 0..1")


def _efforts(model: str) -> tuple[str, ...]:
    """The levels of effort that a model has."""
    if re.search(NO_BUDGETS, model):
        return ("low", "medium", "high", "xhigh", "max")
    if re.search(ADAPTIVE, model):
        return ("low", "medium", "high", "max")
    return ("low", "medium", "high") if re.search(r"opus-4[-.]5", model) else ()


def _check_output(dialect: Anthropic, body: dict[str, Any]) -> None:
    output, model = body.get("output_config"), body["model"]
    if output is None:
        return
    only(dialect, output, ("effort", "format", "task_budget"), "output_config")
    effort = output.get("effort")
    if effort is not None:
        if not _efforts(model):
            dialect.refuse("This model does not support the effort parameter.")
        if effort not in ("low", "medium", "high", "xhigh", "max"):
            dialect.refuse("output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'")
        if effort not in _efforts(model):
            levels = ", ".join(sorted(_efforts(model)))
            dialect.refuse(
                f"This model does not support effort level '{effort}'. Supported levels: {levels}."
            )
        quiet = thinking_type(body) in ("disabled", "between_tools")
        if quiet and effort in ("xhigh", "max") and re.search(FIFTH, model):
            kind = thinking_type(body)
            dialect.refuse(f"\"thinking.type.{kind}\" is not supported with effort '{effort}' on this model.")
    form = output.get("format")
    if form is None:
        return
    if form.get("type") != "json_schema":
        dialect.refuse("output_config.format.type: Input should be 'json_schema'")
    only(dialect, form, ("type", "schema"), "output_config.format")
    if "schema" not in form:
        dialect.refuse("output_config.format.schema: Field required")
    for wrong in schemas.anthropic(form["schema"]):
        dialect.refuse(f"output_config.format.schema: {wrong}")


def _check_tools(dialect: Anthropic, body: dict[str, Any]) -> None:
    names: set[str] = set()
    for index, tool in enumerate(body.get("tools") or ()):
        if tool.get("type", "custom") != "custom":
            continue
        path = f"tools.{index}.custom"
        for name in ("name", "input_schema"):
            if name not in tool:
                dialect.refuse(f"{path}.{name}: Field required")
        only(dialect, tool, TOOL_FIELDS, path)
        if not re.match(TOOL_NAME, tool["name"]):
            dialect.refuse(f"{path}.name: String should match pattern '{TOOL_NAME}'")
        schema = tool["input_schema"]
        if not isinstance(schema, dict):
            dialect.refuse(f"{path}.input_schema: Input should be an object")
        if schema.get("type") != "object":
            wrong = "Field required" if "type" not in schema else "Input should be 'object'"
            dialect.refuse(f"{path}.input_schema.type: {wrong}")
        if {"oneOf", "allOf", "anyOf"} & set(schema):
            dialect.refuse(
                f"{path}.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level"
            )
        if tool["name"] in names:
            dialect.refuse("tools: Tool names must be unique.")
        names.add(tool["name"])
    _check_choice(dialect, body, names)


def _check_choice(dialect: Anthropic, body: dict[str, Any], names: set[str]) -> None:
    choice = body.get("tool_choice")
    if choice is None:
        return
    if not isinstance(choice, dict):
        dialect.refuse("tool_choice: Input should be a valid dictionary or object to extract fields from")
    if not body.get("tools"):
        dialect.refuse("tool_choice: tool_choice may only be specified while providing tools.")
    kind = choice.get("type")
    if kind not in ("auto", "any", "tool", "none"):
        dialect.refuse(
            f"tool_choice: Input tag '{kind}' found using 'type' does not match any of the expected tags: 'auto',"
            " 'any', 'tool', 'none'"
        )
    if kind in ("any", "tool"):
        if re.search(NO_FORCED_TOOLS, body["model"]):
            dialect.refuse(f'"tool_choice.type.{kind}" is not supported for this model.')
        if thinking_type(body) in ("enabled", "adaptive"):
            dialect.refuse("Thinking may not be enabled when tool_choice forces tool use.")
    if kind == "tool" and choice.get("name") not in names:
        dialect.refuse(f"Tool '{choice.get('name')}' not found in provided tools")


def _marks(body: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The cache marks in the order in which they are processed, each under its path."""
    for index, tool in enumerate(body.get("tools") or ()):
        yield f"tools.{index}", tool
    system = body.get("system")
    for index, block in enumerate(system if isinstance(system, list) else ()):
        yield f"system.{index}", block
    for number, message in enumerate(body["messages"]):
        content = message.get("content") if isinstance(message, dict) else None
        for index, block in enumerate(content if isinstance(content, list) else ()):
            yield f"messages.{number}.content.{index}", block
            inner = block.get("content") if block.get("type") == "tool_result" else None
            for place, part in enumerate(inner if isinstance(inner, list) else ()):
                yield f"messages.{number}.content.{index}.tool_result.content.{place}", part
    yield "cache_control", {"cache_control": body["cache_control"]} if "cache_control" in body else {}


def _check_marks(dialect: Anthropic, body: dict[str, Any]) -> None:
    marked = [
        (path, block["cache_control"])
        for path, block in _marks(body)
        if block.get("cache_control") is not None
    ]
    short = False
    for path, mark in marked:
        only(dialect, mark, ("type", "ttl"), f"{path}.cache_control.ephemeral")
        if mark.get("type") != "ephemeral":
            dialect.refuse(
                f"{path}.cache_control: Input tag '{mark.get('type')}' found using 'type' does not match any of the"
                " expected tags: 'ephemeral'"
            )
        ttl = mark.get("ttl", "5m")
        if ttl not in ("5m", "1h"):
            dialect.refuse(f"{path}.cache_control.ephemeral.ttl: Input should be '5m' or '1h'")
        if ttl == "1h" and short:
            dialect.refuse(
                f"{path}.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m'"
                " cache_control block. Note that blocks are processed in the following order: `tools`, `system`,"
                " `messages`."
            )
        short = short or ttl == "5m"
    if len(marked) > 4:
        dialect.refuse(f"A maximum of 4 blocks with cache_control may be provided. Found {len(marked)}.")
