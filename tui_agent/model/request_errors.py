"""Kinds of refused requests, in matching order, and errors about overlong requests.
tests/model/test_errors_refusals.py lists the sources of texts.
"""

from __future__ import annotations

from tui_agent.errors import (
    BadKey,
    ContextTooLong,
    Overloaded,
    RateLimited,
    Refused,
    RequestRejected,
    Unreachable,
)
from tui_agent.files.lazy_regex import late
from tui_agent.files.numbers import whole_number
from tui_agent.model.failures import Failure, FailureKind, any_of

#: Messages of servers and of litellm; tests/model/test_context_length.py lists them.
_TOO_LONG = late(
    r"""(?ix)
    context[ _](?:length|window|size|limit|overflow) | maximum[ ](?:context|prompt|input|model)[ ]l(?:ength|imit)
    | (?:prompt|inputs?)[ ](?:is[ ]|was[ ]|are[ ])?too[ ](?:long|big|large) | prompt:[ ]length
    | (?:prompt|input)[ ](?:exceeds|cannot[ ]exceed)[ ](?:the[ ])?max | prompt[ ]超长 | length[ ]limit[ ]exceeded
    | too[ ]many[ ](?:input[ ]|total[ ]|prompt[ ])?tokens | (?:input|prompt)[ ]token[ ]count
    | tokens?[ ](?:\d+[ ])?(?:exceeds?|exceed[ ]the|cannot[ ]exceed)[ ](?:the[ ])?(?:configured|model|maximum|total)
    | tokens[ ]\(\d+\)[ ]exceed | exceed(?:s|ed)?[ ](?:the[ ]|max[ ]|model[ ])*(?:message[ ])?tokens?[ ]limit
    | maximum[ ]number[ ]of[ ]tokens[ ]allowed | exceeds?[ ]max[ ]message[ ]tokens
    | `?inputs`?[ ]tokens[ ]\+[ ]`?max_new_tokens | `?inputs`?[ ]must[ ]have[ ]less[ ]than
    | input[ ](?:text[ ])?length[ ](?:should|exceeds|of)| expected[ ]maxLength: | string[ ]too[ ]long
    | (?:request|body|payload)[ ](?:body[ ]|payload[ ]|size[ ])*(?:is[ ])?(?:too[ ]large|exceeds)
    | tokens_limit_reached | reduce[ ]the[ ]length | instance[ ]type[ ]with[ ]more[ ]CPU[ ]capacity
    """
)
#: Waiting helps, shorter requests do not.
_RATE = late(r"(?i)rate[ _-]?limit|per (?:minute|min|hour|day|second)|quota|throttl|please wait")
_OVER_ONE = late(r"(?i)request too large")
_OTHER_TOO_LONG = late(r"(?i)invalid '(?!(?:messages|input|prompt)\b)[^']*': string too long")
#: vLLM: the output limit fills the whole window, so no request is short enough.
_ANSWER_TOO_LONG = late(
    r"max(?:_completion)?_tokens'? is too large: (\d+)\. This model's maximum context length is (\d+)"
)
#: https://platform.minimax.io/docs/api-reference/errorcode.md and https://docs.z.ai/api-reference/api-code
_CODES = late(r"(?m)^(?:base_resp 1039|1261)$")
_ACCOUNT = late(r"(?is)\((TP[MD])\):? limit:? (\d+).*?requested:? (\d+)")


def is_too_long(failure: Failure) -> bool:
    status, text = failure.status, failure.text
    if status in (401, 402, 403, 404):
        return False
    if status == 413 or _OVER_ONE.search(text) or _CODES.search(text):
        return True
    answer = _ANSWER_TOO_LONG.search(text)
    if _OTHER_TOO_LONG.search(text) or (answer and whole_number(answer[1]) >= whole_number(answer[2])):
        return False
    if _RATE.search(text) and status in (0, 429, 500, 503):
        return False
    return "ContextWindowExceededError" in failure.names or bool(_TOO_LONG.search(text))


def over_account(failure: Failure) -> tuple[int, int, str] | None:
    """If a single request exceeds a rate limit: the account's limit and the request's size in tokens, and
    "minute" or "day".
    """
    sizes = _ACCOUNT.search(failure.text)
    if sizes is None or whole_number(sizes[3]) <= whole_number(sizes[2]):
        return None
    return whole_number(sizes[2]), whole_number(sizes[3]), "day" if sizes[1].upper() == "TPD" else "minute"


def _is_page(failure: Failure) -> bool:
    return failure.refused is not None and failure.refused.is_page


def _is_challenge(failure: Failure) -> bool:
    signed = "challenge" in failure.headers.get("cf-mitigated", "")
    return signed or (
        _is_page(failure) and bool(_CHALLENGE.search(str(failure.refused and failure.refused.body)))
    )


_CHALLENGE = late(
    r"(?i)just a moment\.\.\.|attention required!|enable javascript and cookies to continue|/cdn-cgi/challenge-platform"
    r"|you have been blocked|_cf_chl_opt|incapsula incident|access to this page has been denied"
)
#: Web pages with these statuses are not the provider's; others are error pages of gateways.
_PAGES = (200, 201, 203, 300, 301, 302, 303, 307, 308, 401, 403, 404, 405, 511)
_REJECTED = (400, 403, 404, 422)
_ADD_CREDIT = "add credit at the provider, or choose another model"
_WAIT_OR_RAISE = "wait until it is reset, raise it at the provider, or choose another model"
_CREDIT = "The account has no credit for {model} ({said})"
_DAY = "The daily limit for {model} is used up ({said})"
_LONGER = (
    "raise the account's tier at the provider, close files or start a new session, or choose another model"
)

_PAGE_KINDS = (
    FailureKind(
        Unreachable,
        "A page of a firewall answered instead of the provider of {model} ({page}, status {status})",
        "try another network, without a VPN or a proxy, and check the address{where}",
        when=_is_challenge,
    ),
    FailureKind(
        Unreachable,
        "A web page answered instead of the provider of {model} ({page}, status {status})",
        "sign in to the network in a browser, or check the proxy and the address{where}",
        statuses=_PAGES,
        when=_is_page,
    ),
    FailureKind(
        Unreachable,
        "The proxy for {model} requires a user name and a password (status 407)",
        "set HTTPS_PROXY to http://name:password@host:port",
        statuses=(407,),
    ),
)
_ACCOUNT_KINDS = (
    FailureKind(
        Unreachable,
        "The provider of {model} does not serve the region of this network ({said})",
        "send the request from a region that it serves (a VPN or a proxy counts), or choose another model",
        any_of(
            "unsupported_country",
            r"country, region, or territory not supported",
            r"location is not supported",
            r"not (?:available|supported|allowed) in your (?:country|region|location|territory)",
        ),
        (400, 401, 403, 404, 451),
    ),
    FailureKind(
        RequestRejected,
        "The provider of {model} requires a verified organization",
        "verify it at https://platform.openai.com/settings/organization/general, or choose another model",
        r"organization must be verified|click on verify organization",
        _REJECTED,
    ),
    FailureKind(
        Unreachable,
        "The account for {model} accepts requests only from certain networks ({said})",
        "send the request from an allowed network, or allow this one at the provider",
        any_of(
            "virtual network",
            "ip_not_authorized",
            r"\bIP\b.{0,60}not (?:authorized|allowed|permitted)",
            "not in the .{0,20}allow ?list",
        ),
        (401, 403),
    ),
    FailureKind(
        RateLimited,
        "The limit of the key for {model} is used up ({said})",
        "raise the limit of the key at the provider, use another key, or choose another model",
        "key limit exceeded|key .{0,30}(?:spending|usage|budget) limit",
    ),
    FailureKind(
        RateLimited,
        _CREDIT,
        _ADD_CREDIT,
        any_of(
            r"insufficient[_ ](?:\w+[_ ])?(?:balance|credits?|funds|quota)",
            r"balance[_ ](?:is )?(?:insufficient|not[_ ]enough)",
            r"credit balance|(?:out of|requires more|all available|have any|no) credits|credits? (?:are|is) depleted",
            r"monthly spending limit|exceeded_current_quota_error|payment (?:required|is past due)",
            r"arrearage|overdue[ -]payment|in good standing|please recharge|余额不足|欠费",
            r"FreeTierOnly|free tier of the model has been exhausted|^1113$|^base_resp 1008$",
        ),
    ),
    FailureKind(
        BadKey,
        "The provider has blocked the key for {model} ({said})",
        "make a new key at the provider, and set {keys} to it",
        any_of(
            r"reported as leaked|CONSUMER_SUSPENDED|has been suspended",
            r"api[_ ]?key.{0,40}(?:revoked|disabled|deactivated|deleted)",
        ),
        (400, 401, 403),
    ),
    FailureKind(
        BadKey,
        "The key for {model} may not be used for this API ({said})",
        "allow the API for the key and for its project at the provider, or use another key",
        any_of(
            "SERVICE_DISABLED|API_KEY_SERVICE_BLOCKED",
            r"has not been used in project|requests to this API .{0,200} are blocked",
        ),
        (400, 401, 403),
    ),
    FailureKind(
        BadKey,
        "The key for {model} lacks a permission ({said})",
        "give the key that permission at the provider, or set {keys} to another one",
        any_of(
            r"missing scopes|insufficient permissions|insufficient[_ ]scope",
            r"lacks the required data action|not authorized to perform",
        ),
        (401, 403),
    ),
)
_SIZE_KINDS = (
    FailureKind(
        ContextTooLong,
        "The account's plan does not include a request of this length to {model} ({said})",
        _LONGER,
        "extra usage is required for long context|long context beta is not",
    ),
    FailureKind(
        ContextTooLong,
        "The account may send {limit} tokens a {span} to {model}, and this request has {requested}",
        _LONGER,
        when=lambda failure: over_account(failure) is not None,
    ),
    FailureKind(
        RequestRejected,
        "{model} does not accept images ({said})",
        "remove the image, or choose a model that accepts images",
        any_of(
            r"unknown variant .{0,2}image_url|support image input|is not a multimodal model",
            r"does(?: not|n't) support (?:\w+ ){0,2}(?:images?|vision)",
            r"images? (?:inputs? )?(?:is|are) not supported",
        ),
    ),
    FailureKind(
        RequestRejected,
        "The provider of {model} cannot take an image of the request ({said})",
        "remove the image, or attach it as a smaller PNG or JPEG",
        any_of(
            r"(?:could not|cannot|unable to|failed to) (?:process|load|decode|identify|read) (?:\w+ ){0,2}image",
            r"image (?:dimensions )?exceeds?\b|invalid[_ ](?:base64[_ ])?image|(?:unsupported|corrupt(?:ed)?) image",
            r"image_(?:parse_error|too_(?:large|small))|image (?:\w+ ){0,3}(?:too (?:large|small|big)|is invalid)",
            r"(?:too many|at most \d+|more than \d+) images?|does not represent a valid image",
        ),
        (400, 404, 413, 415, 422, 500),
    ),
    FailureKind(
        ContextTooLong,
        "The request is too long for {model} ({said})",
        "close files or start a new session, or choose a model with a larger window",
        when=is_too_long,
    ),
)
_DECLINED = any_of(
    r"content[_ ](?:filter|policy|management)|safety system|flagged|usage policies|responsible ?ai|moderation",
    r"data_?inspection_?failed|inappropriate content|content exists risk|considered high risk|prohibited[_ ]content",
    r"violat\w+ .{0,40}polic|^1301$|^base_resp 102[67]$",
)
_DECLINED_WHAT = "The provider of {model} rejected the request because of its content ({said})"
_CHANGE = "change the request, or choose another model"
_CONTENT_KINDS = (
    FailureKind(
        Refused,
        _DECLINED_WHAT,
        _CHANGE,
        when=lambda failure: "ContentPolicyViolationError" in failure.names,
    ),
    FailureKind(Refused, _DECLINED_WHAT, _CHANGE, _DECLINED, (400, 403, 422)),
)
_LIMIT_KINDS = (
    FailureKind(
        RateLimited,
        "The account's plan does not include {model} ({said})",
        "choose a paid plan at the provider, or another model",
        r"limit: 0(?!\.?\d)",
        (429,),
    ),
    FailureKind(RateLimited, _DAY, _WAIT_OR_RAISE, "PerDay", (429,)),  # Gemini: regardless of `retryDelay`
    FailureKind(
        RateLimited,
        _DAY,
        _WAIT_OR_RAISE,
        r"per[ _-]?day\b|\bRPD\b|\bTPD\b|daily|^1304$",
        (402, 403, 429),
        again="if asked",
    ),
    FailureKind(
        RateLimited,
        "The usage limit of the account's plan for {model} is reached ({said})",
        _WAIT_OR_RAISE,
        any_of(
            r"usage limit|(?:weekly|monthly|hour) limit|limit will (?:be )?reset|billing cycle|使用上限",
            r"^13(?:08|10)$|^base_resp 2056$",
        ),
        (402, 403, 429),
        again="if asked",
    ),
    FailureKind(
        RateLimited,
        "The provider's rate limit for {model} is reached ({said})",
        "wait a moment and send the request again, or choose another model",
        r"RESOURCE_EXHAUSTED|quota exceeded for (?:quota )?metric",
        (429,),
        again="yes",
    ),
    FailureKind(
        RateLimited,
        _CREDIT,
        _ADD_CREDIT,
        any_of(
            "exceeded your current quota|plan and billing",
            r"billing[_ ](?:hard[_ ]limit|not[_ ]active)|billing to be enabled",
        ),
    ),
    FailureKind(RateLimited, _CREDIT, _ADD_CREDIT, statuses=(402,)),
)
_MODEL_KINDS = (
    FailureKind(
        RequestRejected,
        "The privacy settings of the account exclude every server of {model} ({said})",
        "change them at https://openrouter.ai/settings/privacy, or choose another model",
        "matching your (?:data policy|guardrail)|settings/privacy",
        (400, 403, 404),
    ),
    FailureKind(
        RequestRejected,
        "None of the servers of {model} supports tools ({said})",
        'set protocol to "structured", or choose another model',
        "no endpoints found that support tool|does not support tools|tools? (?:use|calling|choice) is not supported",
        (400, 404, 422),
    ),
    FailureKind(
        RequestRejected,
        "The provider no longer offers {model} ({said})",
        "choose another model",
        any_of(
            r"model_decommissioned|model_deprecated",
            r"models?\b.{0,120}(?:has been|is|was) (?:deprecated|retired|decommissioned|discontinued|shut ?down)",
            r"models?\b.{0,120}is no longer (?:available|supported|offered)",
        ),
        (400, 403, 404, 410, 422),
    ),
    FailureKind(
        RequestRejected,
        "The server does not know {model}, or the account has no access to it ({said})",
        "check the name of the model, ask the provider for access, or choose another model",
        r"(?:do(?:es)? not|don't) have (?:\w+ )?access|have (?:\w+ )?permission to access|no access to",
        (400, 403, 404),
    ),
    FailureKind(
        RequestRejected,
        "The server does not know {model} ({said})",
        "check the name of the model, and the address if you set one",
        any_of(
            r"model_not_(?:found|exist|supported)|invalid_model|unknown_model|unknown model|no such model",
            r"invalid model\b|not a valid model|\bmodel.{0,120}(?:does )?not (?:exist|found)|^1211$",
        ),
        (400, 403, 422),
    ),
    FailureKind(
        RequestRejected,
        "The server does not know {model} ({said})",
        "check the name of the model, and the address if you set one",
        statuses=(404,),
    ),
)
_KEY_KINDS = (
    FailureKind(
        BadKey,
        "The provider rejected the key for {model} (status {status})",
        "check {keys}",
        statuses=(401,),
    ),
    FailureKind(
        BadKey,
        "The provider rejected the key for {model} (status {status})",
        "check {keys}",
        any_of(
            r"(?:invalid|incorrect|expired).{0,20}api[_ -]?key|api[_ -]?key.{0,20}(?:invalid|not valid|expired)",
            r"security token .{0,60}(?:invalid|expired)|authentication fails",
        ),
        (400, 403),
    ),
    FailureKind(
        BadKey,
        "The provider denied access to {model} ({said})",
        "check what the account and {keys} may use, and whether the provider serves this region",
        statuses=(403,),
    ),
)
_BUSY_KINDS = (
    FailureKind(
        Overloaded,
        "The provider of {model} is overloaded ({said})",
        "send the request again later, or choose another model",
        any_of(
            r"overloaded|(?:over|at|no|insufficient) capacity|capacity exceeded|too busy|high (?:demand|load)",
            r"^13(?:05|12)$",
        ),
        (429, 500, 502, 503, 529),
        again="yes",
    ),
    FailureKind(
        RateLimited,
        "The provider's rate limit for {model} is reached ({said})",
        "wait a moment and send the request again, or choose another model",
        statuses=(429,),
        again="yes",
    ),
    FailureKind(
        Unreachable,
        "The provider of {model} has an error (status {status}, {said})",
        "send the request again later, or choose another model",
        statuses=(408, 409, *range(500, 600)),
        again="yes",
    ),
)
_NO_KEY = FailureKind(
    BadKey,
    "There is no key for {model}",
    "set {keys} and start tui-agent again",
    r"missing .{0,40}(?:api[_ ]?key|credentials)|api_key .{0,60}must be set|no api[_ ]?key",
)
KINDS = (
    *_PAGE_KINDS,
    _NO_KEY,
    *_ACCOUNT_KINDS,
    *_SIZE_KINDS,
    *_CONTENT_KINDS,
    *_LIMIT_KINDS,
    *_MODEL_KINDS,
    *_KEY_KINDS,
    *_BUSY_KINDS,
)


def refusal_of(failure: Failure) -> FailureKind | None:
    return next((kind for kind in KINDS if kind.fits(failure)), None)
