"""The two clients, with a stand-in for the network."""

import unittest

from shop.clients.orders_v2 import OrdersClient
from shop.clients.payments import PaymentsClient
from shop.errors import Declined, NotFound
from shop.models import Line, Order

ORDER = Order("A-1042", "Mara", (Line("The Waves", 2, 995), Line("Orlando", 1, 1250)))


class Network:
    """Answers every request with `answer`, or raises it, and remembers what was asked."""

    def __init__(self, answer):
        self.answer = answer
        self.requests = []

    def __call__(self, request, *, timeout=None):
        self.requests.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class OrdersTest(unittest.TestCase):
    def test_an_order_is_read(self):
        lines = [{"title": "The Waves", "copies": 2, "price": 995}, {"title": "Orlando", "copies": 1, "price": 1250}]
        network = Network({"id": "A-1042", "customer": "Mara", "lines": lines})
        self.assertEqual(OrdersClient("https://orders.test/", network).fetch("A-1042"), ORDER)
        self.assertEqual(network.requests[0].url, "https://orders.test/v2/orders/A-1042")

    def test_a_number_cannot_leave_its_place_in_the_address(self):
        network = Network(NotFound("no such order"))
        with self.assertRaises(NotFound):
            OrdersClient("https://orders.test", network).fetch("../users")
        self.assertEqual(network.requests[0].url, "https://orders.test/v2/orders/..%2Fusers")


class PaymentsTest(unittest.TestCase):
    def test_the_total_is_charged(self):
        network = Network({"accepted": True, "reference": "p-77"})
        receipt = PaymentsClient("https://payments.test", network).charge(ORDER)
        self.assertEqual((receipt.reference, receipt.amount), ("p-77", 3240))
        self.assertEqual(network.requests[0].body["amount"], 3240)

    def test_a_refusal_is_an_error_with_its_reason(self):
        network = Network({"accepted": False, "reason": "card expired"})
        with self.assertRaisesRegex(Declined, "card expired"):
            PaymentsClient("https://payments.test", network).charge(ORDER)

    def test_a_payment_is_sent_once_even_when_it_times_out(self):
        network = Network(TimeoutError())
        with self.assertRaises(TimeoutError):
            PaymentsClient("https://payments.test", network).charge(ORDER)
        self.assertEqual(len(network.requests), 1)


if __name__ == "__main__":
    unittest.main()
