"""What is tried again, how often, and how long it waits in between."""

import unittest

from shop.errors import NotFound, Unavailable
from shop.retry import with_retries


class Flaky:
    """Times out `failures` times and then answers."""

    def __init__(self, failures):
        self.failures = failures
        self.calls = 0

    def __call__(self):
        self.calls += 1
        if self.calls <= self.failures:
            raise TimeoutError
        return "answer"


class RetryTest(unittest.TestCase):
    def test_it_answers_at_the_third_attempt(self):
        pauses = []
        self.assertEqual(with_retries(Flaky(2), sleep=pauses.append), "answer")
        self.assertEqual(pauses, [0.5, 1.0])

    def test_it_gives_up_after_the_third(self):
        call = Flaky(3)
        with self.assertRaises(Unavailable):
            with_retries(call, sleep=lambda seconds: None)
        self.assertEqual(call.calls, 3)

    def test_other_errors_are_not_tried_again(self):
        calls = []

        def missing():
            calls.append(1)
            raise NotFound("no such order")

        with self.assertRaises(NotFound):
            with_retries(missing, sleep=lambda seconds: None)
        self.assertEqual(len(calls), 1)


if __name__ == "__main__":
    unittest.main()
