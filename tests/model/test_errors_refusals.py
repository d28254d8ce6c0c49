"""What providers say when they refuse a request, as they say it, and what a person is told to do about it.

The ids name the provider. The bodies are those of issue threads and documents: openai-go#565, continue#9067, #10373,
#10513, #10962, #11443, #11541, #12547, #12670, #12781, #13195; open-webui/computer#293; OmniRoute#3044; opencode#24462;
openclaude#936; claude-code#10612, #42616; gemini-cli#8437; MiniMax-M2#62; freellmapi#285; sqlmap-ai#3; ragflow#1552;
docs.z.ai/api-reference/api-code; platform.minimax.io/docs/api-reference/errorcode.md; console.groq.com/docs/errors.
"""

# The bodies are on a line each, as they came.
# ruff: noqa: E501

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tui_agent.errors import (
    BadKey,
    ContextTooLong,
    ModelError,
    Overloaded,
    RateLimited,
    Refused,
    RequestRejected,
    Unreachable,
)
from tui_agent.model.event_stream import BrokenStream, Wire
from tui_agent.model.failures import ServerError, retry_after, status_of
from tui_agent.model.provider_errors import Meaning, explain


class Answered(Exception):
    """What an HTTP client raises for an answer with an error status."""

    def __init__(self, status: int) -> None:
        super().__init__("the server answered with an error")
        self.status_code = status


def refused(
    status: int, body: Any, headers: dict[str, str] | None = None, model: str = "openai/gpt-x"
) -> Meaning:
    """The meaning of an answer with a status, a body and headers."""
    headers = headers or {}
    error = ServerError(status, body, retry_after(headers), headers)
    return explain(Answered(status), model, Wire(error=error))


def openai(words: str, code: str | None = None, kind: str = "invalid_request_error") -> dict[str, Any]:
    return {"error": {"message": words, "type": kind, "param": None, "code": code}}


def anthropic(words: str, kind: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": words}, "request_id": "req_1"}


def google(code: int, status: str, words: str, *details: dict[str, Any]) -> dict[str, Any]:
    return {"error": {"code": code, "message": words, "status": status, "details": list(details)}}


def reason(name: str) -> dict[str, Any]:
    return {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": name, "domain": "googleapis.com"}


def quota(*ids: str) -> dict[str, Any]:
    metric = "generativelanguage.googleapis.com/generate_content_free_tier_requests"
    violations = [{"quotaMetric": metric, "quotaId": name} for name in ids]
    return {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": violations}


def delay(seconds: str) -> dict[str, Any]:
    return {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": seconds}


def openrouter(
    code: int, raw: Any, words: str = "Provider returned error", by: str = "BaseTen"
) -> dict[str, Any]:
    raw = raw if isinstance(raw, str) else json.dumps(raw)
    return {"error": {"message": words, "code": code, "metadata": {"raw": raw, "provider_name": by}}}


def minimax(code: int, words: str) -> dict[str, Any]:
    return {"id": "1", "choices": None, "base_resp": {"status_code": code, "status_msg": words}}


VERIFY = (
    "Your organization must be verified to {}. Please go to: https://platform.openai.com/settings/organization/general "
    "and click on Verify Organization. If you just verified, it can take up to 15 minutes for access to propagate."
)
SPENT = (
    "Your team 16f2151a has either used all available credits or reached its monthly spending limit. To continue making "
    "API requests, please purchase more credits or raise your spending limit."
)
GEMINI_QUOTA = (
    "You exceeded your current quota, please check your plan and billing details. For more information on this error, "
    "head to: https://ai.google.dev/gemini-api/docs/rate-limits.{}"
)
BLOCKED = (
    "Requests to this API generativelanguage.googleapis.com method google.ai.generativelanguage.v1beta.GenerativeService"
    ".StreamGenerateContent are blocked."
)
MOONSHOT = (
    "Your account org-ea6a <ak-f8txo> is suspended due to insufficient balance, please recharge your account or check "
    "your plan and billing details"
)
TPM = (
    "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 45000. The input "
    "or output tokens must be reduced in order to run successfully."
)
LONGER = "raise the account's tier .* close files .* another model"

#: Who, status, body, kind of error, what the sentence holds, what the remedy holds. None is asked again.
REFUSED: list[tuple[str, int, Any, type[ModelError], str, str]] = [
    # the region
    ("OpenAI", 403, openai("Country, region, or territory not supported", "unsupported_country_region_territory"), Unreachable, "does not serve the region", "VPN"),
    ("Gemini", 400, google(400, "FAILED_PRECONDITION", "User location is not supported for the API use."), Unreachable, "does not serve the region", "VPN"),
    # what the account lacks
    ("OpenAI", 403, openai("You have insufficient permissions for this operation. Missing scopes: model.request. Check that you have the correct role in your organization."), BadKey, "lacks a permission .*model.request", "give the key that permission .*OPENAI_API_KEY"),
    ("OpenAI", 401, openai("You have insufficient permissions for this operation. Missing scopes: model.request."), BadKey, "lacks a permission", "give the key"),
    ("OpenAI", 403, openai(VERIFY.format("use the model `gpt-5`"), "model_not_found"), RequestRejected, "requires a verified organization", "verify it at https://platform.openai.com"),
    ("OpenAI", 404, openai(VERIFY.format("use the model `gpt-5`"), "model_not_found"), RequestRejected, "requires a verified organization", "choose another model"),
    ("OpenAI", 400, openai(VERIFY.format("stream this model"), "unsupported_value"), RequestRejected, "requires a verified organization", "verify it at https://platform.openai.com"),
    ("Azure", 403, {"error": {"code": "403", "message": "Access denied due to Virtual Network/Firewall rules."}}, Unreachable, "certain networks", "allowed network"),
    ("Azure", 403, {"code": "403", "message": "A Virtual Network is configured for this resource. Please use the correct endpoint."}, Unreachable, "certain networks", "allow this one"),
    ("Azure", 401, {"error": {"code": "PermissionDenied", "message": "The principal `x` lacks the required data action `Microsoft.CognitiveServices/accounts/OpenAI/deployments/chat/completions/action`"}}, BadKey, "lacks a permission", "permission"),
    ("OpenAI", 401, openai("Your request was denied: the IP address 1.2.3.4 is not authorized to use this project", "ip_not_authorized"), Unreachable, "certain networks", "allow"),
    ("Bedrock", 403, {"message": "User: arn:aws:iam::1:user/x is not authorized to perform: bedrock:InvokeModel"}, BadKey, "lacks a permission", "give the key"),
    ("Anthropic", 403, anthropic("Request not allowed", "forbidden"), BadKey, r"denied access .*\(Request not allowed\)", "region"),
    ("Gemini", 403, google(403, "PERMISSION_DENIED", "Your project has been denied access. Please contact support."), BadKey, "denied access", "check what"),
    # the key
    ("OpenAI", 401, openai("Incorrect API key provided: sk-aaaa****zzzz.", "invalid_api_key"), BadKey, r"rejected the key for openai/gpt-x \(status 401\)", "check OPENAI_API_KEY"),
    ("Mistral", 401, {"message": "Unauthorized", "request_id": "1"}, BadKey, "rejected the key", "check"),
    ("Gemini", 400, google(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", reason("API_KEY_INVALID")), BadKey, "rejected the key", "check"),
    ("Gemini", 403, google(403, "PERMISSION_DENIED", "Your API key was reported as leaked. Please use another API key."), BadKey, "blocked the key .*leaked", "make a new key"),
    ("Gemini", 403, google(403, "PERMISSION_DENIED", "Permission denied: Consumer 'api_key:AIza' has been suspended.", reason("CONSUMER_SUSPENDED")), BadKey, "blocked the key", "new key"),
    ("Gemini", 403, google(403, "PERMISSION_DENIED", BLOCKED, reason("API_KEY_SERVICE_BLOCKED")), BadKey, "may not be used for this API", "allow the API"),
    ("Gemini", 403, google(403, "PERMISSION_DENIED", "Generative Language API has not been used in project 1 before or it is disabled.", reason("SERVICE_DISABLED")), BadKey, "may not be used for this API", "allow the API"),
    ("DashScope", 401, {"code": "InvalidApiKey", "message": "Invalid API-key provided.", "request_id": "1"}, BadKey, "rejected the key", "check"),
    ("DeepSeek", 401, openai("Authentication Fails, Your api key: ****abcd is invalid", "invalid_request_error", "authentication_error"), BadKey, "rejected the key", "check"),
    ("Z.ai", 401, {"error": {"code": "1000", "message": "Authentication Failed"}}, BadKey, "rejected the key", "check"),
    ("Bedrock", 403, {"message": "The security token included in the request is expired"}, BadKey, "rejected the key", "check"),
    # the credit
    ("OpenAI", 429, openai("You exceeded your current quota, please check your plan and billing details.", "insufficient_quota", "insufficient_quota"), RateLimited, "no credit", "add credit"),
    ("Anthropic", 400, anthropic("Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing.", "invalid_request_error"), RateLimited, "no credit", "add credit"),
    ("xAI", 403, {"code": "The caller does not have permission to execute the specified operation", "error": SPENT}, RateLimited, "no credit .*monthly spending limit", "add credit"),
    ("xAI", 429, {"code": "Some resource has been exhausted", "error": SPENT}, RateLimited, "no credit", "add credit"),
    ("xAI", 403, {"error": "Your newly created team doesn't have any credits or licenses yet."}, RateLimited, "no credit", "add credit"),
    ("OpenRouter", 402, {"error": {"code": 402, "message": "This request requires more credits, or fewer max_tokens. You requested up to 65536 tokens, but can only afford 1200."}}, RateLimited, "can only afford 1200", "add credit"),
    ("OpenRouter", 402, {"error": {"code": 402, "message": "Prompt tokens limit exceeded: 69120 > 36608. To increase, visit https://openrouter.ai/settings/credits"}}, RateLimited, "69120 > 36608", "add credit"),
    ("OpenRouter", 403, {"error": {"code": 403, "message": "Key limit exceeded (total limit). Manage it using https://openrouter.ai/settings/keys"}}, RateLimited, "limit of the key .* is used up", "raise the limit of the key"),
    ("DeepSeek", 402, openai("Insufficient Balance", "invalid_request_error", "unknown_error"), RateLimited, "no credit", "add credit"),
    ("Moonshot", 429, openai(MOONSHOT, None, "exceeded_current_quota_error"), RateLimited, "no credit", "add credit"),
    ("Moonshot", 403, openai("Your account x is not active, organization exceeded current quota, please check your plan and billing details", None, "exceeded_current_quota_error"), RateLimited, "no credit", "add credit"),
    ("Z.ai", 429, {"error": {"code": "1113", "message": "Insufficient balance or no resource package. Please recharge."}}, RateLimited, "no credit", "add credit"),
    ("MiniMax", 500, anthropic("insufficient balance (1008)", "api_error"), RateLimited, "no credit", "add credit"),
    ("MiniMax", 402, minimax(1008, "insufficient balance"), RateLimited, "no credit", "add credit"),
    ("DashScope", 400, {"error": {"code": "Arrearage", "type": "Arrearage", "message": "Access denied, please make sure your account is in good standing."}}, RateLimited, "no credit", "add credit"),
    ("DashScope", 403, {"code": "AllocationQuota.FreeTierOnly", "message": "The free tier of the model has been exhausted."}, RateLimited, "no credit", "add credit"),
    ("OpenCode Go", 429, openrouter(429, {"error": {"message": MOONSHOT, "type": "exceeded_current_quota_error"}}, "Error from provider: Provider returned error"), RateLimited, "no credit .*recharge", "add credit"),
    # a limit that a short wait does not end
    ("Gemini", 429, google(429, "RESOURCE_EXHAUSTED", GEMINI_QUOTA.format(""), quota("GenerateRequestsPerMinutePerProjectPerModel-FreeTier", "GenerateRequestsPerDayPerProjectPerModel-FreeTier"), delay("34s")), RateLimited, "daily limit", "wait until it is reset"),
    ("Gemini", 429, google(429, "RESOURCE_EXHAUSTED", GEMINI_QUOTA.format(" * Quota exceeded for metric: generate_content_free_tier_requests, limit: 0, model: gemini-2.5-pro Please retry in 34.07s."), quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier"), delay("34s")), RateLimited, "plan does not include", "paid plan"),
    ("OpenRouter", 429, {"error": {"message": "Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day", "code": 429}}, RateLimited, "daily limit", "wait until it is reset"),
    ("Bedrock", 429, {"message": "Too many tokens per day, please wait before trying again."}, RateLimited, "daily limit", "wait until"),
    ("Z.ai", 429, {"error": {"code": "1308", "message": "Usage limit reached for 5 hour. Your limit will reset at 2026-08-27 21:31:39"}}, RateLimited, "usage limit .*2026-08-27 21:31:39", "wait until it is reset"),
    ("Z.ai in Chinese", 429, {"error": {"code": "1308", "message": "已达到 5 小时的使用上限。您的限额将在 2026-08-25 07:41:44 重置。"}}, RateLimited, "usage limit .*07:41:44", "wait until it is reset"),
    ("Ollama", 429, {"error": "you (x) have reached your session usage limit, upgrade for higher limits: https://ollama.com/upgrade"}, RateLimited, "usage limit", "raise it"),
    # too long for the account, or for the model
    ("OpenAI", 429, openai(TPM, "rate_limit_exceeded", "tokens"), ContextTooLong, "may send 30,000 tokens a minute to openai/gpt-x, and this request has 45,000", LONGER),
    ("Groq", 413, openai("Request too large for model `x` in organization `org_1` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Requested 10000, please reduce your message size and try again.", "rate_limit_exceeded", "tokens"), ContextTooLong, "may send 6,000 tokens a minute .* has 10,000", LONGER),
    ("OpenAI", 429, openai("Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Used 0, Requested 45000. Please try again in 30s.", "rate_limit_exceeded", "tokens"), ContextTooLong, "may send 30,000 tokens a minute", LONGER),
    ("Anthropic", 429, anthropic("Extra usage is required for long context requests.", "rate_limit_error"), ContextTooLong, "plan does not include a request of this length", LONGER),
    ("DashScope", 400, openai("Range of input length should be [1, 129024]", "invalid_parameter_error"), ContextTooLong, "too long", "close files"),
    ("Z.ai", 400, {"error": {"code": "1261", "message": "Prompt exceeds max length"}}, ContextTooLong, "too long", "close files"),
    ("MiniMax", 400, minimax(1039, "token limit"), ContextTooLong, "too long", "close files"),
    ("OpenRouter", 400, openrouter(400, anthropic("prompt is too long: 210000 tokens > 200000 maximum", "invalid_request_error"), by="Anthropic"), ContextTooLong, r"\(Anthropic: prompt is too long: 210000 tokens > 200000 maximum\)", "close files"),
    ("OpenRouter", 502, openrouter(502, "This model's maximum context length is 8192 tokens."), ContextTooLong, "too long", "close files"),
    # an image
    ("Anthropic", 400, anthropic("Could not process image", "invalid_request_error"), RequestRejected, "cannot take an image", "PNG or JPEG"),
    ("Anthropic", 400, anthropic("messages.0.content.2.image.source.base64: image exceeds 5 MB maximum: 15908784 bytes > 5242880 bytes", "invalid_request_error"), RequestRejected, "cannot take an image", "smaller"),
    ("Anthropic", 400, anthropic("messages.7.content.2.image.source.base64.data: At least one of the image dimensions exceed max allowed size: 8000 pixels", "invalid_request_error"), RequestRejected, "cannot take an image", "smaller"),
    ("OpenAI", 400, openai("You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png', 'jpeg', 'gif', 'webp'].", "invalid_image_format"), RequestRejected, "cannot take an image", "PNG or JPEG"),
    ("Gemini", 400, google(400, "INVALID_ARGUMENT", "Unable to process input image. Please retry or report in https://developers.generativeai.google/guide/troubleshooting"), RequestRejected, "cannot take an image", "PNG or JPEG"),
    ("OpenRouter", 400, openrouter(400, {"error": {"message": "Model 'moonshotai/kimi-k2.6' supports at most 1 image per prompt."}}, by="Crucible"), RequestRejected, "Crucible: Model .* at most 1 image", "image"),
    ("OpenRouter", 404, {"error": {"message": "No endpoints found that support image input", "code": 404}}, RequestRejected, "does not accept images", "accepts images"),
    ("DeepSeek", 400, openai("Failed to deserialize the JSON body into the target type: messages[1]: unknown variant `image_url`, expected `text`"), RequestRejected, "does not accept images", "accepts images"),
    # the content
    ("OpenAI", 400, openai("Invalid prompt: your prompt was flagged as potentially violating our usage policy.", "invalid_prompt"), Refused, "because of its content", "change the request"),
    ("OpenAI", 400, openai("Your request was rejected as a result of our safety system.", "content_policy_violation"), Refused, "because of its content", "change the request"),
    ("Azure", 400, {"error": {"message": "The response was filtered.", "code": "content_filter", "innererror": {"code": "ResponsibleAIPolicyViolation"}}}, Refused, "because of its content", "change"),
    ("DashScope", 400, {"code": "DataInspectionFailed", "message": "Input data may contain inappropriate content."}, Refused, "because of its content", "change"),
    ("DeepSeek", 400, openai("Content Exists Risk"), Refused, "because of its content", "change"),
    ("Z.ai", 400, {"error": {"code": "1301", "message": "System detected potentially unsafe or sensitive content in input or generation."}}, Refused, "because of its content", "change"),
    ("OpenRouter", 403, {"error": {"code": 403, "message": "openai/gpt-x requires moderation on OpenInference. Your input was flagged for \"violence\".", "metadata": {"reasons": ["violence"], "flagged_input": "…", "provider_name": "OpenInference"}}}, Refused, "flagged for", "change"),
    # the model
    ("OpenAI", 404, openai("The model `gpt-x` does not exist or you do not have access to it.", "model_not_found"), RequestRejected, "does not know openai/gpt-x, or the account has no access", "ask the provider for access"),
    ("OpenAI", 403, openai("Project `proj_1` does not have access to model `gpt-x`", "model_not_found"), RequestRejected, "has no access", "ask the provider for access"),
    ("OpenAI", 404, openai("The model `text-davinci-003` has been deprecated, learn more here: https://platform.openai.com/docs/deprecations", "model_not_found"), RequestRejected, "no longer offers", "choose another model"),
    ("Anthropic", 404, anthropic("model: claude-9-opus", "not_found_error"), RequestRejected, "does not know", "check the name"),
    ("Gemini", 404, google(404, "NOT_FOUND", "models/gemini-9 is not found for API version v1beta, or is not supported for generateContent."), RequestRejected, "does not know", "check the name"),
    ("Gemini", 404, google(404, "NOT_FOUND", "This model models/gemini-2.0-flash is no longer available. Please update your code to use a newer model."), RequestRejected, "no longer offers", "choose another model"),
    ("Groq", 400, openai("The model `qwen-qwq-32b` has been decommissioned and is no longer supported.", "model_decommissioned"), RequestRejected, "no longer offers", "choose another model"),
    ("DeepSeek", 400, openai("Model Not Exist"), RequestRejected, "does not know", "check the name"),
    ("Mistral", 400, {"object": "error", "message": "Invalid model: x", "type": "invalid_model", "param": None, "code": "1500"}, RequestRejected, "does not know", "check the name"),
    ("xAI", 404, {"code": "Some requested entity was not found", "error": "The model grok-9 does not exist or your team 1 does not have access to it."}, RequestRejected, "has no access", "ask the provider"),
    ("Bedrock", 403, {"message": "You don't have access to the model with the specified model ID."}, RequestRejected, "has no access", "ask the provider"),
    ("Z.ai", 400, {"error": {"code": "1211", "message": "Unknown Model, please check the model code."}}, RequestRejected, "does not know", "check the name"),
    ("Ollama", 404, {"error": 'model "x" not found, try pulling it first'}, RequestRejected, "does not know .*try pulling it", "check the name"),
    ("OpenRouter", 404, {"error": {"message": "No endpoints found for x/y.", "code": 404}}, RequestRejected, "does not know", "check the name"),
    ("OpenRouter", 404, {"error": {"message": "No endpoints found that support tool use. To learn more about provider routing, visit: https://openrouter.ai/docs", "code": 404}}, RequestRejected, "supports tools", "structured"),
    ("OpenRouter", 404, {"error": {"message": "No endpoints found matching your data policy (Free model training). Configure: https://openrouter.ai/settings/privacy", "code": 404}}, RequestRejected, "privacy settings", "openrouter.ai/settings/privacy"),
    ("OpenRouter", 404, {"error": {"message": "No endpoints available matching your guardrail restrictions and data policy. Configure: https://openrouter.ai/settings/privacy", "code": 404}}, RequestRejected, "privacy settings", "settings/privacy"),
    # the request itself
    ("OpenRouter", 400, openrouter(400, {"error": {"message": "tools.0.name: bad"}}, by="Azure"), RequestRejected, r"rejected the request \(Azure: tools.0.name: bad\)", "choose another model"),
    ("MiniMax", 400, minimax(2013, "invalid params, tool call id"), RequestRejected, "invalid params", "choose another"),
    ("OpenAI", 400, openai("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", "unsupported_parameter"), RequestRejected, "rejected the request", "choose another"),
    ("proxy for HTTP", 407, "", Unreachable, "requires a user name and a password", "HTTPS_PROXY to http://name:password@host"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("status", "body", "kind", "what", "remedy"),
    [case[1:] for case in REFUSED],
    ids=[f"{who} {status} {number}" for number, (who, status, *_) in enumerate(REFUSED)],
)
def test_a_refusal_that_a_wait_does_not_end(
    status: int, body: Any, kind: type[ModelError], what: str, remedy: str
) -> None:
    meaning = refused(status, body)
    assert type(meaning.error) is kind
    assert re.search(what, meaning.error.what)
    assert re.search(remedy, meaning.error.remedy)
    assert not meaning.again
    assert "openai/gpt-x" in meaning.error.what


#: Who, status, body, headers, kind of error, what the sentence holds, and the seconds until the next attempt.
NOT_NOW: list[tuple[str, int, Any, dict[str, str], type[ModelError], str, float | None]] = [
    ("OpenAI", 429, openai("Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Used 29000, Requested 4000. Please try again in 1.242s.", "rate_limit_exceeded", "tokens"), {}, RateLimited, "rate limit", 1.242),
    ("OpenAI, minutes", 429, openai("Rate limit reached. Please try again in 6m0s.", "rate_limit_exceeded"), {}, RateLimited, "rate limit", 360.0),
    ("OpenAI, milliseconds", 429, openai("Rate limit reached. Please try again in 20ms.", "rate_limit_exceeded"), {}, RateLimited, "rate limit", 0.02),
    ("OpenAI, a day", 429, openai("Rate limit reached for gpt-4o on requests per day (RPD): Limit 200, Used 200, Requested 1. Please try again in 7m12s.", "rate_limit_exceeded"), {}, RateLimited, "daily limit", 432.0),
    ("OpenAI, headers", 429, openai("Slow down", "rate_limit_exceeded"), {"x-ratelimit-remaining-requests": "9", "x-ratelimit-reset-requests": "8m0s", "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1s"}, RateLimited, "rate limit", 1.0),
    ("Anthropic", 429, anthropic("Number of request tokens has exceeded your per-minute rate limit", "rate_limit_error"), {"retry-after": "12"}, RateLimited, "rate limit", 12.0),
    ("Anthropic, dates", 429, anthropic("This request would exceed your organization's rate limit of 30,000 input tokens per minute.", "rate_limit_error"), {"date": "Wed, 21 Oct 2026 07:28:00 GMT", "anthropic-ratelimit-input-tokens-remaining": "0", "anthropic-ratelimit-input-tokens-reset": "2026-10-21T07:28:41Z", "anthropic-ratelimit-requests-remaining": "40", "anthropic-ratelimit-requests-reset": "2026-10-21T07:40:00Z"}, RateLimited, "rate limit", 41.0),
    ("Azure", 429, {"error": {"code": "429", "message": "Requests have exceeded token rate limit of your current OpenAI S0 pricing tier. Please retry after 20 seconds."}}, {}, RateLimited, "rate limit", 20.0),
    ("Gemini", 429, google(429, "RESOURCE_EXHAUSTED", GEMINI_QUOTA.format(""), quota("GenerateRequestsPerMinutePerProjectPerModel-FreeTier"), delay("34s")), {}, RateLimited, "rate limit", 34.0),
    ("Gemini, fraction", 429, google(429, "RESOURCE_EXHAUSTED", GEMINI_QUOTA.format(" Please retry in 34.074824224s."), quota("GenerateContentInputTokensPerModelPerMinute"), delay("34.07s")), {}, RateLimited, "rate limit", 34.074824224),
    ("Gemini, a list", 429, [google(429, "RESOURCE_EXHAUSTED", GEMINI_QUOTA.format(""), delay("5s"))], {}, RateLimited, "rate limit", 5.0),
    ("Gemini, plain", 429, google(429, "RESOURCE_EXHAUSTED", GEMINI_QUOTA.format("")), {}, RateLimited, "rate limit", None),
    ("Vertex", 429, google(429, "RESOURCE_EXHAUSTED", "Resource exhausted. Please try again later."), {}, RateLimited, "rate limit", None),
    ("Mistral", 429, {"message": "Requests rate limit exceeded"}, {}, RateLimited, "rate limit", None),
    ("Mistral, capacity", 429, {"object": "error", "message": "Service tier capacity exceeded for this model.", "type": "invalid_request_error", "code": "3505"}, {}, Overloaded, "overloaded", None),
    ("Moonshot", 429, openai("Your account x request reached project TPM rate limit, current: 1410, limit: 100", None, "rate_limit_reached_error"), {}, RateLimited, "rate limit", None),
    ("Moonshot, overloaded", 429, openai("The engine is currently overloaded, please try again later", None, "engine_overloaded_error"), {}, Overloaded, "overloaded", None),
    ("Z.ai", 429, {"error": {"code": "1302", "message": "High concurrency usage of this API, please reduce concurrency"}}, {}, RateLimited, "rate limit", None),
    ("Z.ai, overloaded", 429, {"error": {"code": "1305", "message": "The service may be temporarily unavailable"}}, {}, Overloaded, "overloaded", None),
    ("MiniMax", 429, minimax(1002, "rate limit"), {}, RateLimited, "rate limit", None),
    ("DashScope", 429, {"code": "Throttling.RateQuota", "message": "Requests rate limit exceeded, please try again later."}, {}, RateLimited, "rate limit", None),
    ("DashScope, tokens", 429, {"code": "Throttling.AllocationQuota", "message": "Allocated quota exceeded, please increase your quota limit."}, {}, RateLimited, "rate limit", None),
    ("OpenRouter", 429, openrouter(429, "z-ai/glm-5.3-flash is temporarily rate-limited upstream. Please retry shortly, or add your own key"), {}, RateLimited, r"rate limit .*\(BaseTen: z-ai/glm-5.3-flash is temporarily", None),
    ("OpenRouter, free a day", 429, {"error": {"message": "Rate limit exceeded: free-models-per-day. ", "code": 429, "metadata": {"headers": {"X-RateLimit-Limit": "50", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1792566120000"}}}}, {"date": "Wed, 21 Oct 2026 07:00:00 GMT"}, RateLimited, "daily limit", 120.0),
    ("Gemini, overloaded", 503, google(503, "UNAVAILABLE", "The model is overloaded. Please try again later."), {"retry-after": "3"}, Overloaded, "overloaded", 3.0),
    ("Anthropic, overloaded", 529, anthropic("Overloaded", "overloaded_error"), {}, Overloaded, "overloaded", None),
    ("a gateway's page", 502, "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>", {}, Unreachable, r"error \(status 502, nginx\)", None),
    ("Cloudflare's page", 522, "<!DOCTYPE html><html><head><title>api.x.ai | 522: Connection timed out</title></head><body>" + "<p>What can I do?</p> " * 20, {}, Unreachable, r"error .status 522, api.x.ai \| 522: Connection timed out", None),
    ("OpenRouter, 502", 502, openrouter(502, "upstream connect error", by="Novita"), {}, Unreachable, "error .*Novita: upstream connect error", None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("status", "body", "headers", "kind", "what", "seconds"),
    [case[1:] for case in NOT_NOW],
    ids=[case[0] for case in NOT_NOW],
)
def test_a_refusal_that_is_waited_for(
    status: int, body: Any, headers: dict[str, str], kind: type[ModelError], what: str, seconds: float | None
) -> None:
    meaning = refused(status, body, headers)
    assert type(meaning.error) is kind
    assert re.search(what, meaning.error.what)
    assert (meaning.again, meaning.seconds) == (True, pytest.approx(seconds) if seconds else None)


IN_STREAM: list[tuple[str, Any, int, type[ModelError], bool]] = [
    ("MiniMax, credit", minimax(1008, "insufficient balance"), 402, RateLimited, False),
    ("MiniMax, key", minimax(1004, "login fail: carry the API secret key"), 401, BadKey, False),
    ("MiniMax, rate", minimax(1002, "rate limit"), 429, RateLimited, True),
    ("MiniMax, length", minimax(1039, "token limit"), 400, ContextTooLong, False),
    ("MiniMax, parameters", minimax(2013, "invalid params"), 400, RequestRejected, False),
    ("MiniMax, unknown", minimax(1000, "unknown error"), 500, Unreachable, True),
    ("Z.ai, credit", {"error": {"code": "1113", "message": "Insufficient balance"}}, 429, RateLimited, False),
    ("Z.ai, busy", {"error": {"code": "1302", "message": "Rate limit reached"}}, 429, RateLimited, True),
    ("Gemini", google(503, "UNAVAILABLE", "The model is overloaded."), 503, Overloaded, True),
    ("OpenRouter", openrouter(429, "rate-limited upstream"), 429, RateLimited, True),
    ("OpenAI", openai("Your input exceeds the context window of this model.", "context_length_exceeded"), 400, ContextTooLong, False),
]  # fmt: skip


@pytest.mark.parametrize(
    ("who", "body", "status", "kind", "again"), IN_STREAM, ids=[row[0] for row in IN_STREAM]
)
def test_an_error_inside_a_stream(
    who: str, body: Any, status: int, kind: type[ModelError], again: bool
) -> None:
    assert status_of(body) == status
    wire = Wire(accepted=True, error=ServerError(status_of(body), body))
    meaning = explain(BrokenStream("ended the answer with an error"), "openai/gpt-x", wire)
    assert (type(meaning.error), meaning.again) == (kind, again)


CHALLENGE = (
    '<!DOCTYPE html><html lang="en-US"><head><title>Just a moment...</title></head>'
    "<body><noscript>Enable JavaScript and cookies to continue</noscript></body></html>"
)
PAGES: list[tuple[str, int, str, dict[str, str], str, str]] = [
    ("a challenge", 403, CHALLENGE, {"cf-mitigated": "challenge"}, "page of a firewall .*Just a moment", "another network"),
    ("a challenge without a header", 503, CHALLENGE, {}, "page of a firewall", "VPN"),
    ("a block", 403, "<html><title>Attention Required! | Cloudflare</title></html>", {}, "page of a firewall", "another network"),
    ("a captive portal", 200, "<html><head><title>Hotel Wi-Fi</title></head><body>Sign in</body></html>", {}, r"A web page answered instead of the provider of openai/gpt-x \(Hotel Wi-Fi, status 200\)", "sign in to the network"),
    ("a captive portal by its status", 511, "<HTML><BODY><h1>Network Authentication Required</h1></BODY></HTML>", {}, "web page .*Network Authentication Required, status 511", "sign in"),
    ("a web site at the address", 404, "<!doctype html><title>404 Not Found</title>nginx", {}, "web page .*404 Not Found", "check the proxy and the address, and OPENAI_API_BASE"),
    ("a company's page", 403, "<!-- x --><html><body>Blocked by policy</body></html>", {}, "web page .*Blocked by policy", "check the proxy"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("who", "status", "body", "headers", "what", "remedy"), PAGES, ids=[row[0] for row in PAGES]
)
def test_a_page_in_place_of_the_provider(
    who: str, status: int, body: str, headers: dict[str, str], what: str, remedy: str
) -> None:
    meaning = refused(status, body, headers)
    assert type(meaning.error) is Unreachable
    assert re.search(what, meaning.error.what)
    assert re.search(remedy, meaning.error.remedy)
    assert not meaning.again


@pytest.mark.parametrize(
    ("status", "kind"),
    [(413, ContextTooLong), (429, RateLimited), (500, Unreachable), (400, RequestRejected)],
)
def test_a_gateways_page_means_what_its_status_means(status: int, kind: type[ModelError]) -> None:
    page = "<html><head><title>Nothing of use</title></head><body></body></html>"
    assert type(refused(status, page).error) is kind


def test_nothing_secret_and_nothing_long_is_repeated() -> None:
    key, address = "sk-proj-abcdefghijklmnop1234", "https://name:password@proxy.example:8080/"
    raw = {"error": {"message": f"bad {key} by {address} " + "x" * 1000}}
    for body in (
        openrouter(400, raw),
        openai(f"{key} {address}" + "x" * 999),
        google(400, "X", json.dumps(raw)),
    ):
        what = refused(400, body).error.what
        assert not re.search("sk-proj|password|name:", what)
        assert len(what) < 400


@pytest.mark.parametrize("body", [None, [], {}, "", {"error": None}, {"message": 7}, [[]]])
@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500])
def test_a_body_that_says_nothing(status: int, body: Any) -> None:
    meaning = refused(status, body)
    assert "no details" in meaning.error.what or status == 401
    assert type(meaning.error) is not ModelError


def test_errors_in_errors_have_an_end() -> None:
    body: Any = "the innermost"
    for _ in range(50):
        body = openrouter(400, body) if isinstance(body, str) else openrouter(400, json.dumps(body)[:10_000])
    assert type(refused(400, body).error) is RequestRejected
