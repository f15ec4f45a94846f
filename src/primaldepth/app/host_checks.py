"""Refuse requests to a host that is not this service, and requests that pages of other web sites cause.

A web site can let a name of its own point to 127.0.0.1 and then talk to a service there as if it were the
site's own (DNS rebinding). The browser tells the name that was asked for in `Host`, so a service that knows
its names can refuse. Addresses need no list where the service listens on every one of them: no one can let
an address point elsewhere.
"""

import ipaddress
import re
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from primaldepth.app.problems import Problem, RefusedError

EVERY_NAME = "*"
_NAME = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*\.?")
_AUTHORITY = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[^\[\]:/@\s]+)(:(?P<port>[0-9]{1,5}))?")
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_OWN_SITES = ("same-origin", "none")  # of Sec-Fetch-Site; "none": typed or a bookmark


def check_name(name: str) -> str:
    """Return a name for `allowed_hosts` in the form it is compared in.

    Raises:
        ValueError: if it has a scheme, a port or a path.
    """
    plain = name.strip().lower().rstrip(".")
    if plain == EVERY_NAME or _address(plain) is not None or _NAME.fullmatch(plain):
        return plain
    raise ValueError("expected the name of a host alone, such as depth.example.org, or * for every name")


class HostChecks:
    """Checks that requests name this service: by one of its names or addresses.

    Args:
        bound: the address or name it listens on.
        allowed: names beside the service's own; "*" allows every name.
    """

    def __init__(self, bound: str, allowed: Iterable[str] = ()) -> None:
        address = _address(bound)
        self._names = {"localhost", *(each for each in allowed if _address(each) is None)}
        if address is None:
            self._names.add(bound.lower())
        self._addresses = {each for each in map(_address, (bound, *allowed)) if each is not None}
        self._every_address = address is not None and address.is_unspecified
        self._every_name = EVERY_NAME in self._names

    def check(self, headers: Mapping[str, str]) -> None:
        """Raise if `Host`, or what a proxy says it was, is neither a name nor an address of this service."""
        for header in ("host", "x-forwarded-host"):
            given = headers.get(header)
            if given is not None and not all(self._knows(each.strip()) for each in given.split(",")):
                message = f"{header}: '{given[:60]}' is no name of this service"
                hint = "use the address it listens on; its operator allows names with --allowed-host"
                raise RefusedError(Problem(421, "wrong_host", message, hint))

    def _knows(self, authority: str) -> bool:
        match = _AUTHORITY.fullmatch(authority)
        if match is None:
            return False
        host = match["host"].strip("[]").lower().rstrip(".")
        address = _address(host)
        if address is None:
            return host in self._names or (self._every_name and _NAME.fullmatch(host) is not None)
        known = address.is_loopback or address in self._addresses
        return known or self._every_address or self._every_name


def check_site(method: str, path: str, headers: Mapping[str, str]) -> None:
    """Raise if a browser sends the request for a page of another site, unless it only reads.

    Browsers tell the site of the page in `Sec-Fetch-Site`, older ones and those on plain HTTP in `Origin`;
    programs send neither.

    Args:
        method: of HTTP.
        path: that is asked for.
        headers: of the request, by names in small letters.

    Raises:
        RefusedError: 403.
    """
    if method in _SAFE_METHODS and not path.startswith("/gradio_api/"):
        return
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None:
        own = site in _OWN_SITES
    else:
        own = origin is None or _same_host(origin, headers.get("host", ""))
    if not own:
        message = "a page of another site asked for this"
        raise RefusedError(Problem(403, "cross_site", message, "open the page of this service itself"))


def _same_host(origin: str, host: str) -> bool:
    """Whether both name one host and port; a proxy may leave the port out of `Host`."""
    try:
        found = urlsplit(origin)
        port = found.port or _DEFAULT_PORTS.get(found.scheme)
    except ValueError:
        return False
    match = _AUTHORITY.fullmatch(host.strip())
    if match is None or found.hostname is None:
        return False
    same_port = match["port"] is None or port == int(match["port"])
    return same_port and found.hostname == match["host"].strip("[]").lower()


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
