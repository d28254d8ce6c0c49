"""Sums and how they are written."""

import unittest

from shop.cli import describe
from shop.models import Line, Order, euros


class ModelsTest(unittest.TestCase):
    def test_cents_are_written_with_two_digits(self):
        self.assertEqual([euros(5), euros(1995), euros(120000)], ["0.05 EUR", "19.95 EUR", "1200.00 EUR"])

    def test_an_order_is_described_line_by_line(self):
        order = Order("A-1", "Mara", (Line("Orlando", 2, 1250),))
        self.assertEqual(describe(order), "A-1 for Mara\n2 x Orlando  12.50 EUR\ntotal 25.00 EUR")


if __name__ == "__main__":
    unittest.main()
