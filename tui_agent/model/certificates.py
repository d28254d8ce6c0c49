"""The certificates by which servers are checked, chosen as litellm chooses them."""

from __future__ import annotations

import os
import ssl
import sys
import threading
from typing import Any

_loading = threading.Lock()


class LateContext(ssl.SSLContext):
    """A context of a client that reads its certificates before its first connection: that takes 30 ms, and a server on
    this machine needs none."""

    file: str = ""

    def load(self) -> None:
        """Read them, once. Raises `OSError`, so `ssl.SSLError`, for a file that holds none."""
        with _loading:
            if self.file:
                self.load_verify_locations(cafile=self.file)
                self.file = ""

    def wrap_bio(self, *arguments: Any, **named: Any) -> ssl.SSLObject:
        self.load()
        return super().wrap_bio(*arguments, **named)

    def wrap_socket(self, *arguments: Any, **named: Any) -> ssl.SSLSocket:
        self.load()
        return super().wrap_socket(*arguments, **named)


def verification() -> LateContext | bool:
    """The `verify` of an HTTP client; False if SSL_VERIFY switches the check off."""
    import certifi

    said = os.environ.get("SSL_VERIFY", "")
    if said.strip().lower() == "false":
        return False
    files = (said, os.environ.get("SSL_CERT_FILE", ""), certifi.where())
    context = LateContext(ssl.PROTOCOL_TLS_CLIENT)  # which checks names and certificates
    context.file = next(file for file in files if os.path.exists(file))
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    for flag in ("VERIFY_X509_PARTIAL_CHAIN", "VERIFY_X509_STRICT"):  # as in a default context
        if sys.version_info >= (3, 13):
            context.verify_flags |= getattr(ssl, flag)
    if keys := os.environ.get("SSLKEYLOGFILE", ""):
        context.keylog_filename = keys
    return context
