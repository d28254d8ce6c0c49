"""What Responses remembers of its reasoning items, and what it refuses when they come back changed or not at all."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from support.strict.given_back import family_of

if TYPE_CHECKING:
    from support.strict.dialect import Dialect

_NOT_STORED = (
    "Item with id '{id}' not found. Items are not persisted when `store` is set to false. Try again with `store` set"
    " to true, or remove this item from your input."
)


@dataclass(slots=True)
class Issued:
    """A reasoning item: `follower` is the type and the call id of the item after it, if it must be just that one."""

    item: dict[str, Any]
    family: str
    stored: bool
    follower: tuple[str, str] | None = None


@dataclass(slots=True)
class Owner:
    """A call of the model: its own id, and the reasoning that precedes it in its reply."""

    item: dict[str, Any]
    family: str
    reasoning: list[Issued] = field(default_factory=list)


class ItemMemory:
    """The items that one server sent."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._reasoning: dict[str, Issued] = {}
        self._contents: dict[str, Issued] = {}
        self._calls: dict[str, Owner] = {}
        self._texts: dict[str, list[Issued | None]] = {}

    def remember(self, items: list[dict[str, Any]], family: str, stored: bool) -> None:
        """Keep the items of a reply."""
        ids = [item["call_id"] for item in items if item["type"] == "function_call"]
        unique = len(set(ids)) == len(ids) and "" not in ids and not set(ids) & set(self._calls)
        before: list[Issued] = []
        for item in items:
            if before and before[-1].follower is None:
                before[-1].follower = (item["type"], item.get("call_id", "") if unique else "")
            if item["type"] == "message":
                led = items[items.index(item) - 1]["type"] == "reasoning" if items.index(item) else False
                self._texts.setdefault(item["content"][0]["text"], []).append(before[-1] if led else None)
            if item["type"] == "reasoning":
                issued = Issued(item, family, stored)
                before.append(issued)
                self._reasoning[item["id"]] = issued
                if item.get("encrypted_content"):
                    self._contents[item["encrypted_content"]] = issued
            elif item["type"] == "function_call" and unique:
                self._calls[item["call_id"]] = Owner(item, family, list(before))

    def forget(self, items: list[dict[str, Any]]) -> None:
        """The client saw only a part of these: none must come back, but any may."""
        for item in items:
            self._calls.pop(item.get("call_id", ""), None)
            if item["type"] == "message":
                self._texts.pop(item["content"][0]["text"], None)
            if item["type"] == "reasoning" and item["id"] in self._reasoning:
                self._reasoning[item["id"]].follower = None

    def check(self, body: dict[str, Any]) -> None:
        """Raises the refusal of items that are not as they were sent."""
        items = body["input"] if isinstance(body["input"], list) else []
        family = family_of(self._dialect.provider, body["model"])
        seen: list[Issued] = []
        for index, item in enumerate(items):
            follower = items[index + 1] if index + 1 < len(items) else None
            match item.get("type", "message"):
                case "reasoning":
                    issued = self._verified(item, family)
                    if any(issued is other for other in seen):
                        self._refuse(
                            f"Duplicate item found with id {issued.item['id']}. Remove duplicate items from your input"
                            " and try again."
                        )
                    self._check_follower(issued, follower)
                    seen.append(issued)
                case "function_call":
                    self._check_call(item, family, seen)
                case "message" if item.get("role") == "assistant":
                    self._check_text(item, family, seen)

    def _verified(self, item: dict[str, Any], family: str) -> Issued:
        content, item_id = item.get("encrypted_content"), item.get("id", "")
        if not content:
            issued = self._reasoning.get(item_id)
            if issued is None or not issued.stored:
                self._refuse(_NOT_STORED.format(id=item_id))
            return issued
        issued = self._contents.get(content)
        if issued is None or issued.family != family:
            self._undecrypted(content, "Encrypted content could not be decrypted or parsed.")
        if item_id and item_id != issued.item["id"]:
            self._undecrypted(content, "Encrypted content item_id did not match the target item id.")
        if item.get("summary") != issued.item["summary"]:
            self._dialect.lose(f"the summary of {issued.item['id']} is not as it was sent")
        return issued

    def _check_follower(self, issued: Issued, follower: dict[str, Any] | None) -> None:
        wanted = issued.follower
        if wanted is None:
            return
        found = (follower or {}).get("type", "message")
        ours = follower is not None and (found != "message" or follower.get("role") == "assistant")
        same_call = wanted[0] != "function_call" or wanted[1] in ("", (follower or {}).get("call_id"))
        if not ours or found != wanted[0] or not same_call:
            self._refuse(
                f"Item '{issued.item['id']}' of type 'reasoning' was provided without its required following item."
            )

    def _check_call(self, item: dict[str, Any], family: str, seen: list[Issued]) -> None:
        owner = self._calls.get(item["call_id"])
        if owner is None or owner.family != family:
            return
        for issued in owner.reasoning:
            if not any(issued is other for other in seen):
                self._refuse(
                    f"Item '{owner.item['id']}' of type 'function_call' was provided without its required 'reasoning'"
                    f" item: '{issued.item['id']}'."
                )
        if item.get("arguments") != owner.item["arguments"]:
            self._dialect.lose(f"the arguments of {item['call_id']} are not as they were sent")

    def _check_text(self, item: dict[str, Any], family: str, seen: list[Issued]) -> None:
        content = item.get("content")
        text = (
            content if isinstance(content, str) else "".join(part.get("text", "") for part in content or ())
        )
        leaders = self._texts.get(text) or [None]
        if any(
            issued is None or issued.family != family or any(issued is one for one in seen)
            for issued in leaders
        ):
            return
        issued = leaders[-1]
        assert issued is not None
        if item.get("id"):
            self._refuse(
                f"Item '{item['id']}' of type 'message' was provided without its required 'reasoning' item:"
                f" '{issued.item['id']}'."
            )
        self._dialect.lose(f"{issued.item['id']} did not come back before its message")

    def _undecrypted(self, content: str, reason: str) -> NoReturn:
        self._dialect.refuse(
            f"The encrypted content {content[:4]}...{content[-4:]} could not be verified. Reason: {reason}",
            code="invalid_encrypted_content",
        )

    def _refuse(self, message: str) -> NoReturn:
        self._dialect.refuse(message, param="input")
