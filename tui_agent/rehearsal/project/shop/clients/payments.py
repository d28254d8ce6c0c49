"""Charging for an order."""

from __future__ import annotations

from shop import settings, transport
from shop.errors import Declined
from shop.models import Order, Receipt


class PaymentsClient:
    """The payments service. `send` is what sends a request: the network, or a stand-in."""

    def __init__(self, base_url: str = settings.PAYMENTS_URL, send: transport.Send = transport.send) -> None:
        self._base_url = base_url.rstrip("/")
        self._send = send

    def charge(self, order: Order) -> Receipt:
        """Charge an order's total, once: a payment is never sent again by itself.

        Raises `Declined`, `Unavailable` or `TimeoutError`.
        """
        body = {"order": order.id, "customer": order.customer, "amount": order.total}
        request = transport.Request("POST", f"{self._base_url}/charges", body)
        answer = self._send(request)
        if not answer["accepted"]:
            raise Declined(answer.get("reason", "no reason given"))
        return Receipt(order.id, answer["reference"], order.total)
