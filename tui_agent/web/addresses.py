"""Internet addresses."""

from __future__ import annotations

import ipaddress


def is_public(address: str) -> bool:
    """Excludes private, loopback, link-local and reserved addresses."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(parsed, ipaddress.IPv6Address):
        inner = parsed.ipv4_mapped or parsed.sixtofour or (parsed.teredo and parsed.teredo[1])
        if inner:
            return is_public(str(inner))
        if parsed in ipaddress.ip_network("64:ff9b::/96"):
            return is_public(str(ipaddress.IPv4Address(parsed.packed[-4:])))
        # Others are reserved, of a site, or translated to IPv4.
        if parsed not in ipaddress.ip_network("2000::/3") or parsed in ipaddress.ip_network("3fff::/20"):
            return False
    elif parsed in ipaddress.ip_network("192.88.99.0/24"):  # Relays to IPv6.
        return False
    return parsed.is_global and not parsed.is_multicast
