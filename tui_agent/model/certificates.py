"""The certificates by which servers are checked, chosen as litellm chooses them."""

from __future__ import annotations

import os
import ssl


def verification() -> ssl.SSLContext | bool:
    """The `verify` of an HTTP client; False if SSL_VERIFY switches the check off."""
    import certifi

    said = os.environ.get("SSL_VERIFY", "")
    if said.strip().lower() == "false":
        return False
    files = (said, os.environ.get("SSL_CERT_FILE", ""), certifi.where())
    context = ssl.create_default_context(cafile=next(file for file in files if os.path.exists(file)))
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
