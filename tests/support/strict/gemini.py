"""Gemini's generateContent: the stream of parts, the count, the errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from support.strict import gemini_rules
from support.strict.counting import Counted, PrefixCache, canonical, tokens_of
from support.strict.dialect import Answering, Dialect, seal, token
from support.strict.frames import MEGABYTE, Frame
from support.strict.gemini_memory import SignatureMemory
from support.strict.reply import Call, Say, Think, View, words
from support.strict.serving import StrictRequest

_PATH = re.compile(r"(/v1beta|/v1alpha|/v1)/models/([^:/]+):(streamGenerateContent|generateContent)")
_FINISH = {"length": "MAX_TOKENS", "filtered": "SAFETY"}
_RPC = "type.googleapis.com/google.rpc."


class Gemini(Dialect):
    """POST /v1beta/models/MODEL:streamGenerateContent?alt=sse and :generateContent."""

    def __init__(self, provider: str, key: str) -> None:
        super().__init__(provider, key)
        self.memory = SignatureMemory(self)
        self.cache = PrefixCache()

    def takes(self, path: str) -> bool:
        return _PATH.fullmatch(path) is not None

    def model_of(self, request: StrictRequest) -> str:
        found = _PATH.fullmatch(request.path)
        return found[2] if found else ""

    def streams(self, request: StrictRequest) -> bool:
        return request.path.endswith(":streamGenerateContent")

    def error_body(self, status: int, message: str, kind: str, code: Any, param: str | None) -> Any:
        word = kind if kind.isupper() else "INVALID_ARGUMENT"
        error: dict[str, Any] = {"code": status, "message": message, "status": word}
        if code == "retry":
            quota = "GenerateContentPaidTierInputTokensPerModelPerMinute"
            violation = {"quotaMetric": "generativelanguage.googleapis.com/requests", "quotaId": quota}
            error["details"] = [
                {"@type": f"{_RPC}QuotaFailure", "violations": [violation]},
                {"@type": f"{_RPC}RetryInfo", "retryDelay": "36s"},
            ]
        elif code:
            service = {"service": "generativelanguage.googleapis.com"}
            info = {
                "@type": f"{_RPC}ErrorInfo",
                "reason": code,
                "domain": "googleapis.com",
                "metadata": service,
            }
            error["details"] = [info]
        if message.startswith("Invalid JSON payload"):
            field = {"field": param or "", "description": message}
            error["details"] = [{"@type": f"{_RPC}BadRequest", "fieldViolations": [field]}]
        return {"error": error}

    def authorize(self, request: StrictRequest) -> None:
        given = request.headers.get("x-goog-api-key") or request.query.get("key")
        if not given:
            self.refuse(
                "Method doesn't allow unregistered callers (callers without established identity). Please use API Key"
                " or other form of API consumer identity to call this API.",
                status=403,
                kind="PERMISSION_DENIED",
            )
        if given != self.key:
            self.raise_fault("wrong_key")

    def check(self, request: StrictRequest) -> None:
        if self.streams(request) and request.query.get("alt") != "sse":
            self.refuse("The strict server streams server-sent events only: ?alt=sse is missing.")
        model = self.model_of(request)
        request.body = gemini_rules.camel(request.body)
        gemini_rules.check(self, request.body, model)
        self.memory.check(request.body, model)

    def thinks(self, request: StrictRequest) -> bool:
        config = (request.body.get("generationConfig") or {}).get("thinkingConfig") or {}
        return bool(self.rules(self.model_of(request)).effort) and config.get("thinkingBudget") != 0

    def view(self, body: dict[str, Any]) -> View:
        contents = body["contents"]
        last = max((index for index, one in enumerate(contents) if one.get("role") == "model"), default=-1)
        parts = [part for one in contents[last + 1 :] for part in one["parts"]]
        told = [
            text
            for one in contents
            if one.get("role") != "model"
            and (text := words([part for part in one["parts"] if "text" in part]))
        ]
        config = body.get("generationConfig") or {}
        responses = [part["functionResponse"] for part in parts if "functionResponse" in part]
        return View(
            text=told[-1] if told else "",
            results=[(one["name"], _result(one["response"])) for one in responses],
            turns=sum(one.get("role") == "model" for one in contents),
            tools=[function["name"] for function in gemini_rules.functions_of(body)],
            schema="responseSchema" in config or "responseJsonSchema" in config,
            images=canonical(contents).count('"inlineData"'),
            system=words((body.get("systemInstruction") or {}).get("parts") or ""),
            body=body,
        )

    def count(self, request: StrictRequest) -> Counted:
        body = request.body
        prompt = (
            canonical([body.get("tools"), body.get("systemInstruction")]) + canonical(body["contents"])[:-1]
        )
        return Counted(input=tokens_of(prompt), cached=self.cache.read(self.model_of(request), prompt))

    def compose(self, answering: Answering) -> list[dict[str, Any]]:
        """Parts; the first call carries a signature, or the last text does, sometimes in a part of its own."""
        parts: list[dict[str, Any]] = []
        config = (answering.body.get("generationConfig") or {}).get("thinkingConfig") or {}
        signed = False
        for index, part in enumerate(answering.reply.parts):
            name = token("part", answering.number, index)
            match part:
                case Think() if config.get("includeThoughts"):
                    parts.append({"text": part.text, "thought": True})
                case Say():
                    parts.append({"text": part.text})
                case Call():
                    call: dict[str, Any] = {"name": part.name, "args": part.value}
                    if answering.reply.misbehave & {"repeated_ids", "empty_ids"} or part.id:
                        call["id"] = answering.id(part.id, name[:12], "call_1")
                    parts.append({"functionCall": call})
                    if not signed:
                        self._sign(answering, parts[-1], name)
                    signed = True
        if parts and not signed and "functionCall" not in parts[-1] and not parts[-1].get("thought"):
            name = token("last", answering.number)
            if answering.number % 2:
                parts.append({"text": ""})
            self._sign(answering, parts[-1], name)
        if not answering.misbehaves("huge_signature"):
            self.memory.remember(parts, answering.model)
        return parts

    def _sign(self, answering: Answering, part: dict[str, Any], name: str) -> None:
        if answering.misbehaves("huge_signature"):
            part["thoughtSignature"] = MEGABYTE * 100
        elif not answering.misbehaves("no_signature"):
            part["thoughtSignature"] = f"CiQB{seal('gemini', answering.model, name)}"
        elif part == {"text": ""}:
            part["text"] = " "

    def forget(self, items: list[dict[str, Any]]) -> None:
        self.memory.forget(items)

    def frames(self, answering: Answering, items: list[dict[str, Any]]) -> Iterator[Frame]:
        """A chunk per piece of a part; the reason of the end has a chunk of its own, or the empty last text has it."""
        last = items[-1] if items and items[-1].get("text") == "" else None
        for part in items:
            if part is last:
                continue
            if "functionCall" in part:
                yield self._chunk(answering, [part])
                continue
            kind = {"thought": True} if part.get("thought") else {}
            pieces = list(answering.pieces(part["text"])) or [part["text"]]
            for piece in answering.thoughts(part["text"]) if kind else pieces[:-1]:
                yield self._chunk(answering, [{"text": piece, **kind}])
            if not kind:
                yield self._chunk(answering, [{**part, "text": pieces[-1]}])
        finish = _FINISH.get(answering.reply.finish, answering.reply.finish) or "STOP"
        ending = self._chunk(answering, [last or {"text": ""}], finish)
        yield Frame(ending.data, final=True)

    def _chunk(self, answering: Answering, parts: list[dict[str, Any]], finish: str = "") -> Frame:
        candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}}
        if finish:
            candidate["finishReason"] = finish
        candidate["index"] = 0
        usage = self._usage(answering, whole=bool(finish))
        counts = {} if usage is None else {"usageMetadata": usage}
        named = {"modelVersion": answering.model, "responseId": token("response", answering.number)}
        return Frame({"candidates": [candidate], **counts, **named})

    def _usage(self, answering: Answering, whole: bool) -> dict[str, Any] | None:
        counted = answering.usage
        if counted is None:
            return None
        shown = {"promptTokenCount": counted.input, "totalTokenCount": counted.input}
        if counted.cached:
            shown["cachedContentTokenCount"] = counted.cached
        if whole:
            shown["candidatesTokenCount"] = counted.output - counted.thinking
            shown["totalTokenCount"] += counted.output
        if counted.thinking and whole:
            shown["thoughtsTokenCount"] = counted.thinking
        return {**shown, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": counted.input}]}

    def whole(self, answering: Answering, items: list[dict[str, Any]]) -> dict[str, Any]:
        finish = _FINISH.get(answering.reply.finish, answering.reply.finish) or "STOP"
        return self._chunk(answering, items, finish).data

    def unknown_frame(self) -> Frame:
        return Frame({"mystery": {"payload": [1]}, "modelVersion": "mystery"})

    def listing(self, names: list[str]) -> dict[str, Any]:
        methods = ["generateContent", "countTokens"]
        limits = {
            "inputTokenLimit": 1048576,
            "outputTokenLimit": 65536,
            "supportedGenerationMethods": methods,
        }
        return {"models": [{"name": f"models/{name}", "displayName": name, **limits} for name in names]}


def _result(response: Any) -> str:
    """The text of a function's response: its only value, or its JSON."""
    if isinstance(response, dict) and len(response) == 1:
        value = next(iter(response.values()))
        return value if isinstance(value, str) else canonical(value)
    return canonical(response)
