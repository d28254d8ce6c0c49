"""Looking up orders, by the second version of the service."""

from __future__ import annotations

from urllib.parse import quote

from shop import transport
from shop.models import Order
from shop.retry import with_retries
from shop.settings import ORDERS_URL


class OrdersClient:
    """The orders service. `send` is what sends a request: the network, or a stand-in."""

    def __init__(self, base_url: str = ORDERS_URL, send: transport.Send = transport.send) -> None:
        self._base_url = base_url.rstrip("/")
        self._send = send

    def fetch(self, order_id: str) -> Order:
        """Look an order up. Raises `NotFound` or `Unavailable`."""
        request = transport.Request("GET", f"{self._base_url}/v2/orders/{quote(order_id, safe='')}")
        data = with_retries(lambda: self._send(request))
        return Order.from_json(data)
