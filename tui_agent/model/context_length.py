"""Detects errors about overlong requests, for all known servers."""

from __future__ import annotations

from tui_agent.files.lazy_regex import late
from tui_agent.files.numbers import whole_number
from tui_agent.model.failures import Failure

#: Error messages of servers and patterns of litellm; tests/model/test_context_length.py lists them.
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
#: A rate limit: shorter requests do not help, waiting does.
_RATE = late(r"(?i)rate[ _-]?limit|per (?:minute|min|hour|day|second)|quota|throttl|please wait")
#: A single request exceeds a rate limit: waiting does not help.
_OVER_ONE = late(r"(?i)request too large")
#: Parameters other than the request's text are too long.
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
    """The account's limit and the request's size in tokens, and "minute" or "day", if a single request
    exceeds a rate limit."""
    sizes = _ACCOUNT.search(failure.text)
    if sizes is None or whole_number(sizes[3]) <= whole_number(sizes[2]):
        return None
    return whole_number(sizes[2]), whole_number(sizes[3]), "day" if sizes[1].upper() == "TPD" else "minute"
