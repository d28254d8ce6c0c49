"""A request that is too long, in the words of every provider: what they say, and what only sounds like it."""

from __future__ import annotations

import ast
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from tui_agent.errors import BadKey, ContextTooLong, ModelError, RateLimited, RequestRejected
from tui_agent.model.event_stream import BrokenStream, Wire
from tui_agent.model.failures import ServerError, status_of
from tui_agent.model.provider_errors import explain

#: Who says it, with which status, in which words.
TOO_LONG = [
    ("OpenAI", 400, "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."),
    ("OpenAI", 400, "Your input exceeds the context window of this model. Please adjust your input and try again."),
    ("OpenAI", 400, "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens."),
    ("OpenAI", 400, "Invalid 'messages[1].content': string too long. Expected a string with maximum length 10485760."),
    ("OpenAI", 400, "Invalid 'input[0].content[0].text': string too long. Expected a string with maximum length 10."),
    ("OpenAI", 429, "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 48552."),
    ("Azure", 400, "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens."),
    ("GitHub", 413, "Request body too large for gpt-4o model. Max size: 8000 tokens."),
    ("GitHub", 400, "prompt token count of 90000 exceeds the limit of 64000"),
    ("Anthropic", 400, "prompt is too long: 210000 tokens > 200000 maximum"),
    ("Anthropic", 400, "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"),
    ("Anthropic", 413, "Request exceeds the maximum size"),
    ("Bedrock", 400, "Input is too long for requested model."),
    ("Bedrock", 400, "Too many input tokens. Max input tokens: 8192, request input token count: 9000"),
    ("Bedrock", 400, "Malformed input request: expected maxLength: 2000, actual: 3000, please reformat your input and try again."),
    ("Bedrock", 400, "prompt: length: 1..2000000"),
    ("Bedrock Mantle", 400, "validation_error: prompt tokens (210000) exceed model maximum (200000)"),
    ("Gemini", 400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
    ("Vertex", 400, "Unable to submit request because the input token count is 40000 but model only supports up to 32768."),
    ("Vertex", 400, "400 Request payload size exceeds the limit: 10485760 bytes."),
    ("Mistral", 400, "Prompt contains 40000 tokens, too large for model with 32768 maximum context length"),
    ("xAI", 400, "This model's maximum prompt length is 131072 but the request contains 200000 tokens."),
    ("Groq", 400, "Please reduce the length of the messages or completion."),
    ("Groq", 413, "Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 11000"),
    ("Cerebras", 400, "Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192"),
    ("Cohere", 400, "too many tokens: total number of tokens in the prompt cannot exceed 4081"),
    ("Together", 422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000"),
    ("Fireworks", 400, "The prompt is too long: 160000, model maximum context length: 131071"),
    ("DeepSeek", 400, "This model's maximum context length is 65536 tokens. However, you requested 70000 tokens"),
    ("DeepInfra", 400, "Requested input length 40000 exceeds maximum input length 32768"),
    ("OpenRouter", 400, "This endpoint's maximum context length is 32768 tokens. However, you requested about 40000 tokens"),
    ("Replicate", 422, "input is too long"),
    ("Hugging Face", 400, "length limit exceeded"),
    ("AI21", 422, "Prompt has too many tokens: 9000"),
    ("NLP Cloud", 400, "Input text length should not exceed 2048 tokens"),
    ("Aleph Alpha", 400, "This is longer than the model's maximum context length"),
    ("SageMaker", 400, "Please use an instance type with more CPU capacity or memory"),
    ("watsonx", 400, "the number of input tokens 9000 cannot exceed the total tokens limit 4096 for this model"),
    ("Cloudflare", 400, "The estimated number of input and maximum output tokens exceeded this model context window limit"),
    ("Moonshot", 400, "Invalid request: Your request exceeded model token limit: 131072 (requested: 140000)"),
    ("MiniMax", 400, "invalid params, context window exceeds limit"),
    ("Z.ai", 400, "Prompt exceeds max length"),
    ("DashScope", 400, "Range of input length should be [1, 129024]"),
    ("Volcengine", 400, "Total tokens of image and text exceed max message tokens"),
    ("vLLM", 400, "This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens."),
    ("vLLM", 400, "The decoder prompt (length 5000) is longer than the maximum model length of 4096."),
    ("vLLM", 400, "'max_tokens' or 'max_completion_tokens' is too large: 2000. This model's maximum context length is 4096 tokens and your request has 3000 input tokens (2000 > 4096 - 3000)."),
    ("vLLM in Xinference", 500, "The decoder prompt (length 66501) is longer than the maximum model length of 65536."),
    ("SGLang", 400, "The input (40000 tokens) is longer than the model's context length (32768 tokens)."),
    ("TensorRT", 400, "Prompt length (9000) exceeds maximum input length (8192)"),
    ("TGI", 422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2500. Given: 2309 `inputs` tokens and 500 `max_new_tokens`"),
    ("TGI", 422, "Input validation error: `inputs` must have less than 1024 tokens. Given: 1168"),
    ("Ollama", 400, "the input length exceeds the context length"),
    ("Ollama", 500, "input exceeds context length"),
    ("Ollama", 400, "prompt too long; exceeded max context length by 320 tokens"),
    ("llama.cpp", 400, "the request exceeds the available context size (4096 tokens), try increasing it"),
    ("llama.cpp", 500, "context size has been exceeded"),
    ("llama.cpp", 500, "input is too large to process. increase the physical batch size"),
    ("LM Studio", 400, "Trying to keep the first 15857 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough."),
    ("LM Studio", 400, "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 13055>= n_ctx: 4096)."),
]  # fmt: skip

#: What only sounds like it, and what it is.
OTHERS: list[tuple[str, int, str, type[ModelError]]] = [
    ("OpenAI", 429, "Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Used 29000, Requested 4000. Please try again in 6s.", RateLimited),
    ("OpenAI", 429, "You exceeded your current quota, please check your plan and billing details.", RateLimited),
    ("OpenAI", 400, "max_tokens is too large: 100000. This model supports at most 16384 completion tokens.", RequestRejected),
    ("OpenAI", 400, "Invalid 'user': string too long. Expected a string with maximum length 64.", RequestRejected),
    ("OpenAI", 400, "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64.", RequestRejected),
    ("OpenAI", 401, "Incorrect API key provided: the maximum context length of it is 51.", BadKey),
    ("Azure", 429, "Requests have exceeded token rate limit of your current OpenAI S0 pricing tier. Please retry after 20 seconds.", RateLimited),
    ("Anthropic", 429, "This request would exceed your organization's rate limit of 30,000 input tokens per minute. Please reduce the prompt length or the maximum tokens requested, or try again later.", RateLimited),
    ("Anthropic", 400, "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens", RequestRejected),
    ("Anthropic", 400, "Your credit balance is too low to access the Anthropic API.", RateLimited),
    ("Bedrock", 429, "Too many tokens, please wait before trying again.", RateLimited),
    ("Bedrock", 429, "Too many tokens per day, please wait before trying again.", RateLimited),
    ("Bedrock", 400, "The maximum tokens you requested exceeds the model limit of 4096.", RequestRejected),
    ("Gemini", 429, "You exceeded your current quota. Quota exceeded for metric: generate_content_free_tier_input_token_count, limit: 250000", RateLimited),
    ("Gemini", 400, "API key not valid. Please pass a valid API key.", BadKey),
    ("Vertex", 400, "Unable to submit request because it has a maxOutputTokens value of 100000 but the supported range is from 1 to 8193", RequestRejected),
    ("Cerebras", 429, "Tokens per minute limit exceeded - too many tokens processed.", RateLimited),
    ("Cohere", 429, "trial token rate limit exceeded, limit is 100000 tokens per minute", RateLimited),
    ("OpenRouter", 402, "This request requires more credits, or fewer max_tokens. You requested up to 32000 tokens.", RateLimited),
    ("vLLM", 400, "'max_tokens' or 'max_completion_tokens' is too large: 9000. This model's maximum context length is 4096 tokens and your request has 20 input tokens (9000 > 4096 - 20).", RequestRejected),
    ("TGI", 422, "Input validation error: `max_new_tokens` must be strictly positive", RequestRejected),
]  # fmt: skip

SHAPES = ("OpenAI's", "Ollama's", "FastAPI's", "in a stream", "without a body")


def told(shape: str, status: int, words: str) -> tuple[Exception, Wire]:
    """As it comes out of litellm, and what was seen of it on the wire."""
    body: Any = {"error": {"message": words, "type": "invalid_request_error", "code": None}}
    if shape == "Ollama's":
        body = {"error": words}
    if shape == "FastAPI's":  # with what was sent
        sent = {"messages": [{"role": "system", "content": "The prompt is too long for the context window."}]}
        body = {"detail": [{"type": "value_error", "loc": ["body"], "msg": words, "input": sent}]}
    if shape == "in a stream":
        body = {"error": {"message": words, "code": status}}
        return BrokenStream(words), Wire(accepted=True, error=ServerError(status_of(body), body))
    error = type("BadRequestError", (Exception,), {"status_code": status, "body": body})
    if shape == "without a body":
        return error(f"litellm.BadRequestError: SomeException - {json.dumps(body)}"), Wire()
    return error(json.dumps(body)), Wire(error=ServerError(status, body))


@pytest.mark.parametrize(("who", "status", "words"), TOO_LONG)
def test_too_long_in_every_providers_words(who: str, status: int, words: str) -> None:
    for shape in SHAPES:
        error, wire = told(shape, status, words)
        meaning = explain(error, "openai/x", wire)
        assert type(meaning.error) is ContextTooLong, shape
        assert not meaning.again


@pytest.mark.parametrize(("who", "status", "words", "kind"), OTHERS)
def test_what_only_sounds_like_it(who: str, status: int, words: str, kind: type[ModelError]) -> None:
    for shape in SHAPES:
        error, wire = told(shape, status, words)
        assert type(explain(error, "openai/x", wire).error) is kind, shape


def sought_by_litellm() -> set[str]:
    """The words by which litellm's own mapping knows that a request is too long, read from its source."""
    spec = importlib.util.find_spec("litellm")
    assert spec is not None and spec.origin is not None
    source = Path(spec.origin).parent / "litellm_core_utils/exception_mapping_utils.py"
    found: set[str] = set()
    for node in ast.walk(ast.parse(source.read_text())):
        match node:
            case ast.If(
                test=test, body=[*_, ast.Raise(exc=ast.Call(func=ast.Name("ContextWindowExceededError")))]
            ):
                found |= set(_texts(test))
            case ast.AnnAssign(target=ast.Name("known_exception_substrings"), value=ast.List() as known):
                found |= set(_texts(known)) if "context" in ast.dump(known) else set()
    return found


def _texts(node: ast.AST) -> list[str]:
    texts = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant)]
    return [text for text in texts if isinstance(text, str) and " " in text]


def test_what_litellm_knows_is_known_here() -> None:
    sought = sought_by_litellm()
    assert len(sought) >= 20
    for words in sought:
        error, wire = told("OpenAI's", 400, words)
        assert type(explain(error, "openai/x", wire).error) is ContextTooLong, words
