"""What a caller may have to deal with."""


class ShopError(Exception):
    """Base of all errors of this package."""


class NotFound(ShopError):
    """The service has no such thing."""


class Unavailable(ShopError):
    """The service did not answer."""


class Declined(ShopError):
    """The payment was refused; nothing was charged."""
