"""Thought signatures that Gemini sent, and its refusals if a call comes back without the one it had."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from support.strict.given_back import family_of

if TYPE_CHECKING:
    from support.strict.gemini import Gemini

#: Stand-ins for the signature of a call that another provider made.
_SKIP = b"skip_thought_signature_validator"
STAND_INS = {_SKIP.decode(), base64.b64encode(_SKIP).decode(), "context_engineering_is_the_way_to_go"}


class SignatureMemory:
    """The signatures that one server sent, and the parts that had them."""

    def __init__(self, dialect: Gemini) -> None:
        self._dialect = dialect
        self._signed: dict[str, tuple[str, dict[str, Any]]] = {}
        self._texts: dict[str, set[str]] = {}

    def remember(self, parts: list[dict[str, Any]], model: str) -> None:
        """Keep the parts of a reply."""
        text = "".join(part.get("text", "") for part in parts if not part.get("thought"))
        for part in parts:
            signature = part.get("thoughtSignature")
            if signature:
                self._signed[signature] = (family_of("gemini", model), part)
                if "functionCall" not in part and text:
                    self._texts.setdefault(text, set()).add(signature)

    def forget(self, parts: list[dict[str, Any]]) -> None:
        """The client saw only a part of these."""
        self._texts.pop("".join(part.get("text", "") for part in parts if not part.get("thought")), None)

    def check(self, body: dict[str, Any], model: str) -> None:
        """Raises the refusal of calls without the right signature; earlier turns are noted only."""
        contents = body["contents"]
        turn = max((index for index, one in enumerate(contents) if _is_asked(one)), default=0)
        strict = family_of("gemini", model) not in ("gemini-2.5", "gemini-2.0", "")
        for index, content in enumerate(contents):
            if content.get("role") != "model":
                continue
            self._check_known(content, model)
            calls = [part for part in content["parts"] if "functionCall" in part]
            if calls and strict and not calls[0].get("thoughtSignature"):
                self._missing(calls[0], index, current=index > turn)
            self._check_text(content)

    def _check_known(self, content: dict[str, Any], model: str) -> None:
        for part in content["parts"]:
            signature = part.get("thoughtSignature")
            if not signature or signature in STAND_INS:
                if signature and part.get("functionCall") in [
                    one.get("functionCall") for _, one in self._signed.values()
                ]:
                    self._dialect.lose("a call of this provider came back with a stand-in for its signature")
                continue
            family, sent = self._signed.get(signature, ("", {}))
            if family != family_of("gemini", model):
                self._dialect.refuse("Corrupted thought signature.")
            if _said(sent) != _said(part):
                self._dialect.refuse("Invalid thought signature.")

    def _missing(self, call: dict[str, Any], index: int, current: bool) -> None:
        name = call["functionCall"]["name"]
        if not current:
            self._dialect.lose(f"the call of {name} in contents[{index}] came back without its signature")
            return
        self._dialect.refuse(
            "Function call is missing a thought_signature in functionCall parts. This is required for tools to work"
            " correctly, and missing thought_signature may lead to degraded model performance. Additional data,"
            f" function call `default_api:{name}` , position {index + 1}. Please refer to"
            " https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
        )

    def _check_text(self, content: dict[str, Any]) -> None:
        text = "".join(part.get("text", "") for part in content["parts"] if not part.get("thought"))
        signatures = self._texts.get(text)
        if signatures and not signatures & {part.get("thoughtSignature") for part in content["parts"]}:
            self._dialect.lose("a text came back without its signature")


def _said(part: dict[str, Any]) -> tuple[Any, Any] | None:
    """The name and the arguments of a call: its id may be the client's own."""
    call = part.get("functionCall")
    return (call.get("name"), call.get("args")) if call else None


def _is_asked(content: dict[str, Any]) -> bool:
    """Whether a person said a thing: the begin of a turn."""
    return content.get("role", "user") == "user" and any("text" in part for part in content["parts"])
