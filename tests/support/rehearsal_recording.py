"""Writes the recording of the rehearsal from its scenes: `cd tests && python -m support.rehearsal_recording`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import cycle, islice
from typing import Any

import msgspec
from support.rehearsal_scenes import CLIENT, COMMAND, MODEL, REPAIRS, SCENES, WORDS, Scene

from tui_agent.model.client import CallChunk, Chunk, EndChunk, TextChunk, UsageChunk
from tui_agent.rehearsal import recording
from tui_agent.tools.tool import switched_on

#: Seconds before the first chunk, long enough to show the waiting indicator.
FIRST_WAIT = 0.5
#: Seconds before each call of an answer without text.
CALL_PAUSE = 1.3
#: Words per chunk and seconds between chunks of text shown while streaming: about 100 characters per second.
READ_WORDS, READ_PAUSES = (1, 2, 1, 1, 2), (0.06, 0.08, 0.05, 0.06)
#: The same for the rest of the answer, which is not shown while streaming.
REST_WORDS, REST_PAUSES = (4, 3), (0.02,)

Timed = tuple[float, Chunk]


def _part(goal: str, summary: str, changes: dict[str, dict[str, str]], tokens: tuple[int, int, int]) -> Scene:
    """A sub-task's only answer; `changes` maps paths to search and replacement texts."""
    edits: list[dict[str, Any]] = [
        {"path": path, "edits": [{"search": old, "replace": new} for old, new in pairs.items()]}
        for path, pairs in changes.items()
    ]
    answer = {"summary": summary, "message": "", "fileChanges": edits, "nextSteps": []}
    given, came, cached = tokens
    return Scene(request=goal, answer=answer, tokens_in=given, tokens_out=came, cached=cached)


#: Recorded sub-tasks, found by goal; their edits build on their dependencies' edits.
PARTS = (
    _part(
        MODEL,
        "An order has `cancelled`, and the total of one that is cancelled is nothing.",
        {
            "shop/models.py": {
                "    lines: tuple[Line, ...]\n\n    @property": (
                    "    lines: tuple[Line, ...]\n    cancelled: bool = False\n\n    @property"
                ),
                "        return sum(": "        return 0 if self.cancelled else sum(",
                '        return cls(data["id"], data["customer"], lines)': (
                    '        return cls(data["id"], data["customer"], lines, bool(data.get("cancelled")))'
                ),
            },
            "tests/test_models.py": {
                "    def test_an_order_is_described_line_by_line(self):": (
                    "    def test_nothing_is_due_for_an_order_that_is_cancelled(self):\n"
                    '        order = Order("A-1", "Mara", (Line("Orlando", 2, 1250),), cancelled=True)\n'
                    "        self.assertEqual(order.total, 0)\n\n"
                    "    def test_an_order_is_described_line_by_line(self):"
                )
            },
        },
        (3120, 351, 1900),
    ),
    _part(
        CLIENT,
        "`OrdersClient.cancel` asks the service once, and reads the cancelled order.",
        {
            "shop/clients/orders_v2.py": {
                "    def fetch(self, order_id: str) -> Order:": (
                    "    def cancel(self, order_id: str) -> Order:\n"
                    '        """Cancel an order, once: it is not sent again by itself. Raises as `fetch` does."""\n'
                    "        address = f\"{self._base_url}/v2/orders/{quote(order_id, safe='')}/cancel\"\n"
                    '        return Order.from_json(self._send(transport.Request("POST", address)))\n\n'
                    "    def fetch(self, order_id: str) -> Order:"
                )
            },
            "tests/test_clients.py": {
                "    def test_a_number_cannot_leave_its_place_in_the_address(self):": (
                    "    def test_an_order_is_cancelled_once(self):\n"
                    '        network = Network({"id": "A-1", "customer": "Mara", "lines": [], "cancelled": True})\n'
                    '        self.assertTrue(OrdersClient("https://orders.test", network).cancel("A-1").cancelled)\n'
                    "        (request,) = network.requests\n"
                    '        self.assertEqual(request.url, "https://orders.test/v2/orders/A-1/cancel")\n\n'
                    "    def test_a_number_cannot_leave_its_place_in_the_address(self):"
                )
            },
        },
        (3480, 402, 1900),
    ),
    _part(
        WORDS,
        "A cancelled order says so in a line of its own.",
        {
            "shop/cli.py": {
                '    return "\\n".join([f"{order.id} for': (
                    "    if order.cancelled:\n"
                    '        titles.append("cancelled, nothing is due")\n'
                    '    return "\\n".join([f"{order.id} for'
                )
            }
        },
        (3055, 138, 1900),
    ),
    _part(
        COMMAND,
        "`shop cancel` cancels an order and shows it; the README has the line.",
        {
            "shop/cli.py": {
                'choices=["show", "pay"]': 'choices=["show", "pay", "cancel"]',
                "        order = OrdersClient().fetch(options.order)\n": (
                    "        orders = OrdersClient()\n"
                    '        ask = orders.cancel if options.command == "cancel" else orders.fetch\n'
                    "        order = ask(options.order)\n"
                ),
            },
            "README.md": {
                "    python -m shop pay A-1042         charge what it costs\n": (
                    "    python -m shop pay A-1042         charge what it costs\n"
                    "    python -m shop cancel A-1042      call it off\n"
                )
            },
        },
        (3611, 244, 1900),
    ),
)


def lines() -> Iterator[str]:
    """The recording as JSON lines: a header, then one exchange per scene and sub-task."""
    yield _line(
        {
            "type": "recording",
            "version": 1,
            "model": "recorded",
            "protocol": "structured",
            "window": 200_000,
            "rehearsal": True,
            "requests": [scene.request for scene in SCENES],
        }
    )
    for purpose, scenes in (("main", (*SCENES, *REPAIRS)), ("subtask", PARTS)):
        for scene in scenes:
            said = list(chunks(scene))
            yield _line({"type": "exchange", "pass": purpose, "ask": scene.request, "chunks": said})


def chunks(scene: Scene) -> Iterator[Timed]:
    """The streamed chunks of a scene, each with its delay in seconds."""
    if scene.form == "calls":
        # The lists of an answer as function calls
        functions = {function.key: function for function in (tool.function for tool in switched_on(()))}
        for number, (key, entries) in enumerate(scene.answer.items()):
            function = functions[key]
            arguments = json.dumps({function.parameter: entries}, ensure_ascii=False)
            yield CALL_PAUSE, CallChunk(number, f"call_{number}", function.name, arguments)
        yield 0, UsageChunk(scene.tokens_in, scene.tokens_out, scene.cached, 0.0)
        yield 0, EndChunk(reason="tool_calls")
        return
    if scene.form == "prose":
        text = scene.answer["message"]
        read = len(text)
    else:
        text = json.dumps(scene.answer, ensure_ascii=False)
        said = {key: scene.answer[key] for key in ("summary", "message")}
        read = len(json.dumps(said, ensure_ascii=False)) - 1
    pieces = [*_pieces(text[:read], READ_WORDS, READ_PAUSES), *_pieces(text[read:], REST_WORDS, REST_PAUSES)]
    for number, (pause, piece) in enumerate(pieces):
        yield (FIRST_WAIT if number == 0 else pause), TextChunk(piece)
    yield 0, UsageChunk(scene.tokens_in, scene.tokens_out, scene.cached, 0.0)
    yield 0, EndChunk(reason="stop")


def _pieces(text: str, sizes: tuple[int, ...], pauses: tuple[float, ...]) -> Iterator[tuple[float, str]]:
    words = iter(re.findall(r"\s*\S+", text))
    for size, pause in zip(cycle(sizes), cycle(pauses), strict=False):
        piece = "".join(islice(words, size))
        if not piece:
            return
        yield pause, piece


def _line(value: object) -> str:
    return msgspec.json.encode(value).decode() + "\n"


if __name__ == "__main__":
    recording().write_text("".join(lines()), encoding="utf-8", newline="\n")
