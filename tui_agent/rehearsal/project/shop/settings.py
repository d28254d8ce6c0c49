"""Every figure of the program. Times are in seconds, money is in cents."""

ORDERS_URL = "https://orders.example.com"
PAYMENTS_URL = "https://payments.example.com"

REQUEST_TIMEOUT = 10.0

ATTEMPTS = 3
PAUSE = 0.5
