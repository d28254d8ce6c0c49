"""Errors that every provider has, in each provider's words, with its status and headers.

Sources: the researched facts of the project, and error bodies quoted in public issue threads. `{model}` and `{after}`
are filled in.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Fault:
    """An error: `kind` is its type or status word, `code` its code."""

    status: int
    message: str
    kind: str = "invalid_request_error"
    code: Any = None
    headers: dict[str, str] = field(default_factory=dict)


_RETRY = {"retry-after": "{after}"}
_OPENAI = {
    "rate_limit": Fault(
        429,
        "Rate limit reached for {model} in organization org-test on tokens per min (TPM): Limit 30000, Used 29000,"
        " Requested 2000. Please try again in 2s. Visit https://platform.openai.com/account/rate-limits to learn more.",
        "tokens",
        "rate_limit_exceeded",
        {
            "retry-after": "{after}",
            "retry-after-ms": "2000",
            "x-ratelimit-limit-requests": "500",
            "x-ratelimit-remaining-requests": "0",
            "x-ratelimit-reset-requests": "2s",
            "x-ratelimit-reset-tokens": "6m0s",
        },
    ),
    "no_credit": Fault(
        429,
        "You exceeded your current quota, please check your plan and billing details. For more information on this"
        " error, read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors.",
        "insufficient_quota",
        "insufficient_quota",
    ),
    "wrong_key": Fault(
        401,
        "Incorrect API key provided: {key}. You can find your API key at https://platform.openai.com/account/api-keys.",
        code="invalid_api_key",
    ),
    "overloaded": Fault(
        503, "The server is currently overloaded with other requests. Please try again.", "server_error"
    ),
    "too_long": Fault(
        400,
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        code="context_length_exceeded",
    ),
    "filtered": Fault(
        400,
        "Invalid prompt: your prompt was flagged as potentially violating our usage policy. Please try again with a"
        " different prompt.",
        code="invalid_prompt",
    ),
    "not_found": Fault(
        404, "The model `{model}` does not exist or you do not have access to it.", code="model_not_found"
    ),
    "region": Fault(
        403,
        "Country, region, or territory not supported",
        "request_forbidden",
        "unsupported_country_region_territory",
    ),
    "org_verification": Fault(
        400,
        "Your organization must be verified to stream this model. Please go to:"
        " https://platform.openai.com/settings/organization/general and click on Verify Organization. If you just"
        " verified, it can take up to 15 minutes for access to propagate.",
        code="unsupported_value",
    ),
    "bad_image": Fault(
        400,
        "The image data you provided does not represent a valid image. Please check your input and try again.",
        code="invalid_image",
    ),
}
_ANTHROPIC = {
    "rate_limit": Fault(
        429,
        "This request would exceed your organization's rate limit of 30,000 input tokens per minute. For details,"
        " refer to: https://docs.claude.com/en/api/rate-limits.",
        "rate_limit_error",
        None,
        {
            "retry-after": "{after}",
            "anthropic-ratelimit-requests-limit": "50",
            "anthropic-ratelimit-requests-remaining": "0",
            "anthropic-ratelimit-requests-reset": "2026-11-23T12:00:02Z",
            "anthropic-ratelimit-input-tokens-remaining": "0",
        },
    ),
    "no_credit": Fault(
        400,
        "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or"
        " purchase credits.",
    ),
    "wrong_key": Fault(401, "invalid x-api-key", "authentication_error"),
    "overloaded": Fault(529, "Overloaded", "overloaded_error"),
    "too_long": Fault(400, "prompt is too long: 1008310 tokens > 1000000 maximum"),
    "filtered": Fault(400, "Output blocked by content filtering policy"),
    "not_found": Fault(404, "model: {model}", "not_found_error"),
    "region": Fault(403, "Request not allowed", "forbidden"),
    "org_verification": Fault(403, "Your organization does not have access to {model}.", "permission_error"),
    "bad_image": Fault(400, "Could not process image"),
}
_GEMINI = {
    "rate_limit": Fault(
        429,
        "You exceeded your current quota, please check your plan and billing details. For more information on this"
        " error, head to: https://ai.google.dev/gemini-api/docs/rate-limits. * Quota exceeded for metric:"
        " generativelanguage.googleapis.com/generate_content_paid_tier_input_token_count, limit: 1000000, model:"
        " {model}\nPlease retry in 36.5s.",
        "RESOURCE_EXHAUSTED",
        "retry",
    ),
    "no_credit": Fault(
        429,
        "Your prepayment credits are depleted. Please go to AI Studio at https://ai.studio/projects to manage your"
        " project and billing.",
        "RESOURCE_EXHAUSTED",
    ),
    "wrong_key": Fault(
        400, "API key not valid. Please pass a valid API key.", "INVALID_ARGUMENT", "API_KEY_INVALID"
    ),
    "overloaded": Fault(503, "The model is overloaded. Please try again later.", "UNAVAILABLE"),
    "too_long": Fault(
        400,
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        "INVALID_ARGUMENT",
    ),
    "filtered": Fault(400, "The prompt was blocked.", "INVALID_ARGUMENT"),
    "not_found": Fault(
        404,
        "models/{model} is not found for API version v1beta, or is not supported for generateContent. Call ListModels"
        " to see the list of available models and their supported methods.",
        "NOT_FOUND",
    ),
    "region": Fault(400, "User location is not supported for the API use.", "FAILED_PRECONDITION"),
    "org_verification": Fault(403, "The caller does not have permission", "PERMISSION_DENIED"),
    "bad_image": Fault(
        400,
        "Unable to process input image. Please retry or report in"
        " https://developers.generativeai.google/guide/troubleshooting",
        "INVALID_ARGUMENT",
    ),
}
_DEEPSEEK = {
    **_OPENAI,
    "rate_limit": Fault(
        429, "Rate limit reached, please slow down.", "rate_limit_error", "rate_limit_reached"
    ),
    "no_credit": Fault(402, "Insufficient Balance", "unknown_error", "invalid_request_error"),
    "wrong_key": Fault(
        401,
        "Authentication Fails, Your api key: {key} is invalid",
        "authentication_error",
        "invalid_request_error",
    ),
    "overloaded": Fault(503, "Service is too busy. Please try again later.", "service_unavailable_error"),
    "too_long": Fault(
        400,
        "This model's maximum context length is 1048576 tokens. However, you requested 1200000 tokens (1199000 in the"
        " messages, 1000 in the completion). Please reduce the length of the messages or completion.",
        code="invalid_request_error",
    ),
    "filtered": Fault(400, "Content Exists Risk", code="invalid_request_error"),
    "not_found": Fault(400, "Model Not Exist", code="invalid_request_error"),
}
_MISTRAL = {
    "rate_limit": Fault(429, "Rate limit exceeded", "rate_limited", "1300"),
    "no_credit": Fault(402, "You have no active subscription or credits.", "payment_required", "1100"),
    "wrong_key": Fault(401, "Unauthorized"),
    "overloaded": Fault(
        429, "Service tier capacity exceeded for this model.", "service_tier_capacity_exceeded", "3505"
    ),
    "too_long": Fault(
        400,
        "Prompt contains 300000 tokens and 0 draft tokens, too large for model with 262144 maximum context length",
        "invalid_request_prompt_too_long",
        "3051",
    ),
    "filtered": Fault(
        403, "The prompt was rejected by the moderation guardrail.", "guardrail_violation", "3800"
    ),
    "not_found": Fault(400, "Invalid model: {model}", "invalid_model", "1500"),
    "region": Fault(403, "Access denied", "forbidden", "1101"),
    "org_verification": Fault(
        403, "Access to this model is not enabled for the workspace", "forbidden", "1102"
    ),
    "bad_image": Fault(400, "Image could not be loaded", "invalid_request_file", "3310"),
}
_OPENROUTER = {
    "rate_limit": Fault(
        429, "Provider returned error", "{model} is temporarily rate-limited upstream.", 429, _RETRY
    ),
    "no_credit": Fault(
        402,
        "This request requires more credits, or fewer max_tokens. You requested up to 4096 tokens, but can only afford"
        " 4000. To increase, visit https://openrouter.ai/settings/credits and upgrade to a paid account",
        "",
    ),
    "wrong_key": Fault(401, "User not found.", ""),
    "overloaded": Fault(502, "Provider returned error", "upstream overloaded"),
    "too_long": Fault(
        400,
        "This endpoint's maximum context length is 1000000 tokens. However, you requested about 1200000 tokens"
        " (1199000 of text input, 1000 in the output). Please reduce the length of either one, or use the"
        ' "middle-out" transform to compress your prompt automatically.',
        "",
    ),
    "filtered": Fault(403, "Input was flagged by the provider's moderation", ""),
    "not_found": Fault(400, "{model} is not a valid model ID", ""),
    "region": Fault(403, "This model is not available in your region.", ""),
    "org_verification": Fault(404, "No endpoints found matching your data policy.", ""),
    "bad_image": Fault(400, "Provider returned error", "Could not process image"),
}
_GROQ = {
    **_OPENAI,
    "rate_limit": Fault(
        429,
        "Rate limit reached for model `{model}` in organization `org_test` service tier `on_demand` on tokens per"
        " minute (TPM): Limit 8000, Used 7000, Requested 2000. Please try again in 7.5s. Need more tokens? Upgrade to"
        " Dev Tier today at https://console.groq.com/settings/billing",
        "tokens",
        "rate_limit_exceeded",
        _RETRY,
    ),
    "wrong_key": Fault(401, "Invalid API Key", code="invalid_api_key"),
    "overloaded": Fault(
        503,
        "{model} is currently over capacity. Please try again and back off exponentially.",
        "internal_server_error",
    ),
    "too_long": Fault(
        400, "Please reduce the length of the messages or completion.", code="context_length_exceeded"
    ),
    "not_found": Fault(
        404, "The model `{model}` does not exist or you do not have access to it.", code="model_not_found"
    ),
}
_XAI = {
    "rate_limit": Fault(
        429, "Too many requests for team test and model {model}.", code="Some resource has been exhausted"
    ),
    "no_credit": Fault(
        403,
        "Your team has either used all available credits or reached its monthly spending limit.",
        code="The caller does not have permission to execute the specified operation",
    ),
    "wrong_key": Fault(
        400,
        "Incorrect API key provided: {key}. You can obtain an API key from https://console.x.ai.",
        code="Client specified an invalid argument",
    ),
    "overloaded": Fault(
        503,
        "The model is currently at capacity due to high demand.",
        code="The service is currently unavailable",
    ),
    "too_long": Fault(
        400,
        "This model's maximum prompt length is 500000 but the request contains 600000 tokens.",
        code="Client specified an invalid argument",
    ),
    "filtered": Fault(403, "Content violates usage guidelines.", code="permission-denied"),
    "not_found": Fault(
        404,
        "The model {model} does not exist or your team does not have access to it.",
        code="Some requested entity was not found",
    ),
    "region": Fault(403, "Not available in your region.", code="permission-denied"),
    "org_verification": Fault(403, "Your team has no access to {model}.", code="permission-denied"),
    "bad_image": Fault(400, "Failed to decode the image.", code="Client specified an invalid argument"),
}
_MOONSHOT = {
    "rate_limit": Fault(
        429, "Your account reached max request, please try again after 1 seconds", "rate_limit_reached_error"
    ),
    "no_credit": Fault(
        429,
        "Your account is suspended due to insufficient balance, please recharge your account or check your plan and"
        " billing details",
        "exceeded_current_quota_error",
    ),
    "wrong_key": Fault(401, "Invalid Authentication", "invalid_authentication_error"),
    "overloaded": Fault(
        429, "The engine is currently overloaded, please try again later", "engine_overloaded_error"
    ),
    "too_long": Fault(400, "Invalid request: Your request exceeded model token limit: 262144"),
    "filtered": Fault(400, "The request was rejected because it was considered high risk", "content_filter"),
    "not_found": Fault(404, "Not found the model {model} or Permission denied", "resource_not_found_error"),
    "region": Fault(403, "The API you are accessing is not open", "permission_denied_error"),
    "org_verification": Fault(403, "You are not allowed to access this model", "permission_denied_error"),
    "bad_image": Fault(400, "Invalid request: unsupported image format"),
}
_ZAI = {
    "rate_limit": Fault(429, "Rate limit reached for requests", code="1302"),
    "no_credit": Fault(429, "Insufficient balance or no resource package. Please recharge.", code="1113"),
    "wrong_key": Fault(401, "token expired or incorrect", code="401"),
    "overloaded": Fault(
        429, "The service may be temporarily overloaded, please try again later", code="1305"
    ),
    "too_long": Fault(400, "Prompt exceeds max length", code="1261"),
    "filtered": Fault(
        400, "System detected potentially unsafe or sensitive content in input or generation.", code="1301"
    ),
    "not_found": Fault(400, "Unknown Model, please check the model code.", code="1211"),
    "region": Fault(403, "You do not have permission to access the API", code="1220"),
    "org_verification": Fault(429, "Your plan does not yet include access to {model}", code="1311"),
    "bad_image": Fault(400, "Invalid API parameter, please check the documentation.", code="1210"),
}
_MINIMAX = {
    "rate_limit": Fault(429, "rate limit exceeded(RPM) (1002)", "rate_limit_error"),
    "no_credit": Fault(429, "insufficient balance (1008)", "insufficient_balance_error"),
    "wrong_key": Fault(401, "invalid api key (2049)", "authorized_error"),
    "overloaded": Fault(529, "The server cluster is currently under high load. (2064)", "overloaded_error"),
    "too_long": Fault(400, "invalid params, context window exceeds limit (2013)", "bad_request_error"),
    "filtered": Fault(400, "input new_sensitive (1026)", "bad_request_error"),
    "not_found": Fault(400, "invalid params, unknown model '{model}' (2013)", "bad_request_error"),
    "region": Fault(403, "your region is not supported (2061)", "permission_error"),
    "org_verification": Fault(
        403, "your current token plan not support model, {model} (2061)", "permission_error"
    ),
    "bad_image": Fault(400, "invalid params, invalid image (2013)", "bad_request_error"),
}
_DASHSCOPE = {
    "rate_limit": Fault(
        429,
        "You have exceeded your current request limit. For details, see:"
        " https://help.aliyun.com/zh/model-studio/error-code#rate-limit",
        "limit_requests",
        "limit_requests",
    ),
    "no_credit": Fault(
        400,
        "Access denied, please make sure your account is in good standing. For details, see:"
        " https://help.aliyun.com/zh/model-studio/error-code#overdue-payment",
        "Arrearage",
        "Arrearage",
    ),
    "wrong_key": Fault(
        401,
        "Incorrect API key provided. For details, see:"
        " https://help.aliyun.com/zh/model-studio/error-code#apikey-error",
        code="invalid_api_key",
    ),
    "overloaded": Fault(
        503, "<503> InternalError.Algo: Too many requests.", "ServiceUnavailable", "ServiceUnavailable"
    ),
    "too_long": Fault(
        400,
        "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 983616]",
        code="invalid_parameter_error",
    ),
    "filtered": Fault(
        400,
        "<400> InternalError.Algo.DataInspectionFailed: Input data may contain inappropriate content.",
        "data_inspection_failed",
        "data_inspection_failed",
    ),
    "not_found": Fault(
        404, "The model `{model}` does not exist or you do not have access to it.", code="model_not_found"
    ),
    "region": Fault(403, "Access denied.", "AccessDenied", "AccessDenied"),
    "org_verification": Fault(403, "Model access denied.", "Model.AccessDenied", "Model.AccessDenied"),
    "bad_image": Fault(
        400,
        "<400> InternalError.Algo.InvalidParameter: The image format is illegal and cannot be opened",
        code="invalid_parameter_error",
    ),
}
FAULTS: dict[str, dict[str, Fault]] = {
    "openai": _OPENAI,
    "anthropic": _ANTHROPIC,
    "gemini": _GEMINI,
    "deepseek": _DEEPSEEK,
    "mistral": _MISTRAL,
    "openrouter": _OPENROUTER,
    "groq": _GROQ,
    "xai": _XAI,
    "moonshot": _MOONSHOT,
    "zai": _ZAI,
    "minimax": _MINIMAX,
    "dashscope": _DASHSCOPE,
}
