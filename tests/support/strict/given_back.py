"""What providers want back of a reply, as their documentation has it: a list of the tests' own.

The product has its own in `rules.toml`. A wrong entry there is a refused or a lossy request here.
"""

from __future__ import annotations

import re

#: Models whose thinking each other accepts, the first that fits: OpenAI's and Anthropic's guides on reasoning items and
#: thinking blocks, Google's on thought signatures. Any other model is a family of its own.
_FAMILIES = (
    (r"gpt-oss", "gpt-oss"),
    (r"\bo[134](?:-|$)", "o"),
    (r"\bgpt-6", "gpt-6"),
    (r"\bgpt-5\.6", "gpt-5.6"),
    (r"\bgpt-5\.1(?!\d)", "gpt-5.1"),
    (r"\bgpt-5\.\d", "gpt-5.2"),
    (r"\bgpt-5", "gpt-5"),
    (r"\bclaude-(?:3-7-sonnet|(?:opus|sonnet|haiku)-4)", "claude-4"),
    (r"\bclaude-(?:opus|sonnet|haiku|fable)-5[-.][1-9]|\bclaude-mythos-5[-.][2-9]", ""),
    (r"\bclaude-(?:opus|sonnet|haiku|fable|mythos)-(?:5|preview)", "claude-5"),
    (r"\bgemini-2[.-]5", "gemini-2.5"),
    (r"\bgemini-(?:[34]|(?:flash|flash-lite|pro)-latest)", "gemini-3"),
    (r"deepseek-(?:v4|flash|pro|v3\.2|reasoner)", "deepseek"),
    (r"\bkimi-k(?:2\.[56]|3)|kimi.*thinking", "kimi"),
    (r"\bglm-(?:4\.[5-9]|5)", "glm"),
    (r"\bminimax-m", "minimax"),
    (r"\bqw(?:en3|q)", "qwen"),
    (r"\bgrok-", "grok"),
)
#: The field that carries thinking back, by model: DeepSeek's, Moonshot's, Z.ai's, Alibaba's and xAI's guides on
#: thinking with tools; MiniMax's `reasoning_split`; `reasoning` of gpt-oss.
_FIELDS = (
    (r"gpt-oss", "reasoning"),
    (r"deepseek-(?:v4|flash|pro|v3\.2|reasoner)", "reasoning_content"),
    (r"\bkimi-k(?:2\.[56]|3)|kimi.*thinking|\bglm-(?:4\.[5-9]|5)|\bqw(?:en3|q)|\bgrok-", "reasoning_content"),
    (r"\bminimax-m", "reasoning_details"),
)
#: The same by provider, whatever the model.
_FIELD_OF = {"groq": "reasoning", "openrouter": "reasoning_details", "github_copilot": ""}
#: Mistral's models that think, and give that as a part of `content`.
_MISTRAL = r"magistral|^mistral-(?:medium(?:-latest|-3|-2604|$)|small-(?:latest|2603)|large-4|vibe-cli)"
#: Models whose thinking is bound to all that precedes it: from Claude 5.1 on, without Mythos 5.1.
_BOUND = r"\bclaude-(?:(?:opus|sonnet|haiku|fable)-5[-.][1-9]|mythos-5[-.][2-9])"


def family_of(provider: str, model: str) -> str:
    """The family of a model: those of it accept each other's thinking."""
    if provider == "mistral" and re.search(_MISTRAL, model):
        return "mistral"
    found = next((family for sign, family in _FAMILIES if re.search(sign, model, re.IGNORECASE)), "")
    return found or re.sub(r"-(?:\d{4}-\d\d-\d\d|\d{8})$", "", model)


def thinking_field(provider: str, model: str) -> str:
    """The field of a message that brings thinking back; "" if none does."""
    if provider in _FIELD_OF:
        return _FIELD_OF[provider]
    if provider == "mistral":
        return "content" if re.search(_MISTRAL, model) else ""
    return next((field for sign, field in _FIELDS if re.search(sign, model, re.IGNORECASE)), "")


def is_bound(model: str) -> bool:
    """Whether thinking is valid only behind exactly what preceded it."""
    return bool(re.search(_BOUND, model, re.IGNORECASE))
