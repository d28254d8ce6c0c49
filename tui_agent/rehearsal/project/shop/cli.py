"""The command line: show an order, or pay for it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from shop.clients.orders_v2 import OrdersClient
from shop.clients.payments import PaymentsClient
from shop.errors import ShopError
from shop.models import Order, euros


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="shop", description="A bookshop's orders and payments.")
    parser.add_argument("command", choices=["show", "pay"])
    parser.add_argument("order", help="the order's number, such as A-1042")
    options = parser.parse_args(arguments)
    try:
        order = OrdersClient().fetch(options.order)
        print(describe(order))
        if options.command == "pay":
            print("paid:", PaymentsClient().charge(order).reference)
    except (ShopError, TimeoutError) as error:
        print(f"shop: {error}", file=sys.stderr)
        return 1
    return 0


def describe(order: Order) -> str:
    """An order as a person reads it, a title a line, the total last."""
    titles = [f"{line.copies} x {line.title}  {euros(line.price)}" for line in order.lines]
    return "\n".join([f"{order.id} for {order.customer}", *titles, f"total {euros(order.total)}"])
