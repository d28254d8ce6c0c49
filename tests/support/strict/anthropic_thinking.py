"""Thinking blocks that Anthropic sent, and its refusals if they come back changed, moved, in part, or elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from support.strict.counting import digest
from support.strict.given_back import family_of, is_bound

if TYPE_CHECKING:
    from support.strict.anthropic import Anthropic

THINKING = ("thinking", "redacted_thinking")
_MODIFIED = (
    "messages.{at}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These"
    " blocks must remain as they were in the original response."
)


@dataclass(frozen=True, slots=True)
class Issued:
    """A block as it was sent: the family of its model, the digest of all before it, and the whole reply."""

    block: dict[str, Any]
    family: str
    prefix: str
    bound: bool
    reply: tuple[dict[str, Any], ...]


class ThinkingMemory:
    """The thinking blocks that one server sent."""

    def __init__(self, dialect: Anthropic) -> None:
        self._dialect = dialect
        self._issued: dict[str, Issued] = {}
        #: Replies by the ids of their calls, and by their words.
        self._replies: dict[str, list[tuple[dict[str, Any], ...]]] = {}
        #: Blocks that the last request allowed to drop.
        self.dropped = 0

    def remember(self, items: list[dict[str, Any]], body: dict[str, Any]) -> None:
        """Keep the blocks of a reply to a request."""
        family = family_of("anthropic", body["model"])
        reply = tuple(items)
        for index, item in enumerate(items):
            if item["type"] in THINKING:
                prefix = prefix_of(body, body["messages"], items[:index])
                self._issued[_proof(item)] = Issued(item, family, prefix, is_bound(body["model"]), reply)
            self._replies.setdefault(_name(item), []).append(reply)

    def forget(self, items: list[dict[str, Any]]) -> None:
        """The client saw only a part of these: none must come back, but any may."""
        for item in items:
            self._replies.pop(_name(item), None)
            if item["type"] in THINKING and _proof(item) in self._issued:
                issued = self._issued[_proof(item)]
                self._issued[_proof(item)] = Issued(item, issued.family, issued.prefix, issued.bound, ())

    def check(self, body: dict[str, Any], thinks: bool) -> None:
        """Raises the refusal of blocks that are not as they were sent."""
        self.dropped = 0
        messages = body["messages"]
        latest = max((index for index, one in enumerate(messages) if one["role"] == "assistant"), default=-1)
        for index, message in enumerate(messages):
            if message["role"] != "assistant" or isinstance(message["content"], str):
                continue
            blocks = message["content"]
            self._check_proofs(body, index, blocks, latest=index == latest)
            if thinks:
                self._check_whole(body, index, blocks, latest=index == latest)

    def _check_proofs(
        self, body: dict[str, Any], index: int, blocks: list[dict[str, Any]], latest: bool
    ) -> None:
        family = family_of("anthropic", body["model"])
        bound = is_bound(body["model"])
        for place, block in enumerate(blocks):
            if block["type"] not in THINKING:
                continue
            at = f"{index}.content.{place}"
            issued = self._issued.get(_proof(block))
            if issued is None:
                what = (
                    "`data` in `redacted_thinking`"
                    if block["type"] == "redacted_thinking"
                    else "`signature` in `thinking`"
                )
                self._dialect.refuse(f"messages.{at}: Invalid {what} block")
            if block != issued.block:
                modified = _MODIFIED.format(at=at)
                self._dialect.refuse(
                    modified if latest else f"messages.{at}: Invalid `signature` in `thinking` block"
                )
            if issued.family != family:
                if "haiku-5" in body["model"]:
                    self.dropped += 1
                    continue
                self._dialect.refuse(f"messages.{at}: Invalid `signature` in `thinking` block")
            if (
                bound
                and issued.bound
                and issued.prefix != prefix_of(body, body["messages"][:index], blocks[:place])
            ):
                self._unbound(body, at)

    def _unbound(self, body: dict[str, Any], at: str) -> None:
        binding = (body.get("thinking") or {}).get("block_binding") or {}
        if binding.get("prefix_mismatch_behavior") == "drop_block":
            self.dropped += 1
            return
        self._dialect.refuse(
            f"messages.{at}: Invalid `signature` in `thinking` block. The block is bound to a different conversation."
            ' Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
        )

    def _check_whole(
        self, body: dict[str, Any], index: int, blocks: list[dict[str, Any]], latest: bool
    ) -> None:
        """The latest message must hold all thinking of its reply, between the same other blocks, or none."""
        replies = self._replies_of(blocks)
        if not any(block["type"] in THINKING for reply in replies for block in reply):
            return
        if not any(block["type"] in THINKING for block in blocks):
            if all(any(block["type"] in THINKING for block in reply) for reply in replies):
                self._check_dropped(body, index, blocks, latest)
            return
        shape = [_shape(block) for block in blocks]
        shapes = [[_shape(block) for block in reply] for reply in replies]
        if latest and shape not in shapes:
            pairs = enumerate(zip_longest(shape, shapes[0]))
            place = next(place for place, (one, other) in pairs if one != other)
            self._dialect.refuse(_MODIFIED.format(at=f"{index}.content.{min(place, len(blocks) - 1)}"))

    def _replies_of(self, blocks: list[dict[str, Any]]) -> list[tuple[dict[str, Any], ...]]:
        """The replies that blocks may be of: by their thinking or their calls, else by their words."""
        sure = [block for block in blocks if block["type"] != "text"]
        for some in (sure, blocks):
            for block in some:
                if replies := self._replies.get(_name(block)):
                    return replies
        return []

    def _check_dropped(
        self, body: dict[str, Any], index: int, blocks: list[dict[str, Any]], latest: bool
    ) -> None:
        budget = (body.get("thinking") or {}).get("type") == "enabled"
        if latest and budget and any(block["type"] == "tool_use" for block in blocks):
            self._dialect.refuse(
                f"messages.{index}.content.0.type: Expected `thinking` or `redacted_thinking`, but found"
                f" `{blocks[0]['type']}`. When `thinking` is enabled, a final `assistant` message must start with a"
                " thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). We recommend"
                " you include thinking blocks from previous turns. To avoid this requirement, disable `thinking`."
                " Please consult our documentation at"
                " https://docs.claude.com/en/docs/build-with-claude/extended-thinking"
            )
        self._dialect.lose(f"messages.{index} came back without the thinking of its reply")


def prefix_of(body: dict[str, Any], messages: list[dict[str, Any]], blocks: list[dict[str, Any]]) -> str:
    """The digest of all that precedes a block, without cache marks."""
    told = [{"role": one["role"], "content": _plain(one["content"])} for one in messages]
    return digest(
        _plain(body.get("system") or []), _unmarked(body.get("tools") or []), told, _unmarked(blocks)
    )


def _plain(content: Any) -> Any:
    return [{"type": "text", "text": content}] if isinstance(content, str) else _unmarked(content)


def _unmarked(value: Any) -> Any:
    if isinstance(value, list):
        return [_unmarked(item) for item in value]
    if isinstance(value, dict):
        return {key: _unmarked(item) for key, item in value.items() if key != "cache_control"}
    return value


def _proof(block: dict[str, Any]) -> str:
    return block.get("signature") or block.get("data") or ""


def _name(block: dict[str, Any]) -> str:
    """The text that finds the reply of a block."""
    match block["type"]:
        case "tool_use":
            return f"call {block['id']}"
        case "text":
            return f"text {block['text']}"
    return f"thinking {_proof(block)}"


def _shape(block: dict[str, Any]) -> tuple[str, str]:
    return (block["type"], _proof(block) if block["type"] in THINKING else "")
