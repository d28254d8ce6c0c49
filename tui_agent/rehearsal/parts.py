"""Recorded sub-tasks of the rehearsal, found by goal; their edits build on their dependencies' edits."""

from __future__ import annotations

from typing import Any

from tui_agent.rehearsal.requests import Scene

MODEL = "Let an order say that it is cancelled, and let nothing be due for one that is."
CLIENT = "Cancel an order at the service, once, and read the order that comes back."
WORDS = "Describe a cancelled order so that nobody takes it for an open one."
COMMAND = "Add `cancel` to the command line and to the README."


def _part(goal: str, summary: str, changes: dict[str, dict[str, str]], tokens: tuple[int, int, int]) -> Scene:
    """A sub-task's only answer; `changes` maps paths to search and replacement texts."""
    edits: list[dict[str, Any]] = [
        {"path": path, "edits": [{"search": old, "replace": new} for old, new in pairs.items()]}
        for path, pairs in changes.items()
    ]
    answer = {"summary": summary, "message": "", "fileChanges": edits, "nextSteps": []}
    given, came, cached = tokens
    return Scene(request=goal, answer=answer, tokens_in=given, tokens_out=came, cached=cached)


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
