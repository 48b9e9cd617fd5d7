"""The host names of our servers, and the pages that may send requests to them.

A page of another site can make a browser send requests to this machine (cross-site requests). It can also read from this
machine by pointing its own name at it (DNS rebinding). Two headers, which no script in a browser can set, reveal both:
``Host`` is the name in the address bar, ``Origin`` the page of the request. ``Access`` decides by them, for the page,
``serve`` and MLflow's page; ``X-Forwarded-Host``, which a script can set, has no effect.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rallebench.core.errors import UsageError

DEFAULT_PORTS = {"http": 80, "https": 443}

_AUTHORITY = re.compile(
    r"(\[[0-9a-f:.]+\]|[a-z0-9_][a-z0-9_.-]*)(?::([0-9]{0,5}))?", re.ASCII | re.IGNORECASE
)
_ORIGIN = re.compile(r"(https?)://(.+)", re.ASCII | re.IGNORECASE)


class Authority(NamedTuple):
    """A host in its normal form (lower case, no brackets, no trailing dot), and its port, None if absent."""

    name: str
    port: int | None


class HostRefusal(NamedTuple):
    """The HTTP status and the sentence of a refused request."""

    status: int
    message: str


@dataclass(frozen=True, slots=True)
class Access:
    """The hosts of a server. ``names``: hosts in their normal form; ``loopback``: all loopback addresses as well.

    ``allowed``: further hosts that the user allows, with the port of their pages unless it is the scheme's own.
    """

    names: frozenset[str]
    loopback: bool = True
    allowed: frozenset[Authority] = frozenset()

    def answers_to(self, name: str) -> bool:
        """Return whether ``name``, in its normal form, is a host of this server."""
        listed = name in self.names or any(name == host.name for host in self.allowed)
        return listed or (self.loopback and is_loopback(name))

    def refusal(self, headers: Iterable[tuple[bytes, bytes]]) -> HostRefusal | None:
        """The refusal of a request with these headers (names in lower case), or None.

        400: not exactly one well-formed Host; 421: the Host is not ours; 403: the page is another site's.
        """
        fields = [
            (name, value.decode("latin-1"))
            for name, value in headers
            if name in (b"host", b"origin")
        ]
        hosts, origins = (
            [value for key, value in fields if key == name] for name in (b"host", b"origin")
        )
        host = authority(hosts[0]) if len(hosts) == 1 else None
        if host is None:
            return HostRefusal(
                400, "The request needs one Host header that names a host, such as localhost:7860."
            )
        if not self.answers_to(host.name):
            return HostRefusal(
                421,
                f"This server does not answer to the name {host.name}; start it with the allowed host {_bracket(host.name)}.",
            )
        if origins and not (len(origins) == 1 and self._is_own(origins[0], host)):
            return HostRefusal(
                403,
                "A page of another site sent this request; if it is yours, start the server with its host as an allowed host.",
            )
        return None

    def _is_own(self, origin: str, host: Authority) -> bool:
        """Return whether ``origin`` is this server, or a page of an allowed host."""
        parts = _ORIGIN.fullmatch(origin)
        page = authority(parts[2]) if parts else None
        if parts is None or page is None:
            return False
        default = DEFAULT_PORTS[parts[1].lower()]
        page = Authority(page.name, page.port or default)
        own = {Authority(name, port or default) for name, port in (host, *self.allowed)}
        return page in own


LOOPBACK = Access(frozenset({"localhost"}))
"""The access to a server that is reachable only from this machine."""


def authority(text: str) -> Authority | None:
    """``host`` or ``host:port`` in its normal form; None for any other text.

    >>> authority("LOCALHOST.:7860"), authority("[0:0::1]"), authority("localhost@evil.example")
    (Authority(name='localhost', port=7860), Authority(name='::1', port=None), None)
    """
    parts = _AUTHORITY.fullmatch(text)
    if parts is None:
        return None
    name = parts[1].lower().removesuffix(".")
    if name.startswith("["):
        try:
            name = str(ipaddress.IPv6Address(name[1:-1]))
        except ValueError:
            return None
    port = int(parts[2]) if parts[2] else None
    return Authority(name, port) if name and (port is None or 0 < port < 65536) else None


def is_loopback(host: str) -> bool:
    """Return whether ``host`` is reachable only from this machine.

    >>> [is_loopback(host) for host in ("127.0.0.2", "::1", "[::1]", "localhost", "0.0.0.0", "127.0.0.1.example")]
    [True, True, True, True, False, False]
    """
    address = _address(host.removeprefix("[").removesuffix("]"))
    return host.lower() == "localhost" or (address is not None and address.is_loopback)


def server_access(
    host: str, allowed: Sequence[str] = (), names_of_machine: Callable[[], set[str]] | None = None
) -> Access:
    """The access to a server bound to ``host``, with every allowed host. Raises UsageError.

    Loopback: its names; a wildcard address: the names of the machine; else the bound host and its addresses.
    """
    extra = frozenset(_read_allowed(text) for text in allowed)
    bound = host.removeprefix("[").removesuffix("]").partition("%")[0].lower().removesuffix(".")
    if is_loopback(bound):
        return Access(LOOPBACK.names, True, extra)
    address = _address(bound)
    if not bound or (address is not None and address.is_unspecified):
        return Access(
            frozenset(LOOPBACK.names | (names_of_machine or machine_names)()), True, extra
        )
    return Access(frozenset({bound} | _addresses(bound)), False, extra)


def machine_names() -> set[str]:
    """The names and addresses of this machine on the network, in their normal form."""
    import psutil

    name = socket.gethostname().lower()
    names = {name, socket.getfqdn().lower(), name.partition(".")[0]} | {
        f"{name.partition('.')[0]}.local"
    }
    texts = [entry.address for entries in psutil.net_if_addrs().values() for entry in entries]
    return {name.removesuffix(".") for name in names if authority(name)} | _normal(texts)


def mlflow_options(port: int, allowed: Sequence[str] = ()) -> list[str]:
    """The options of MLflow's own server, on loopback at ``port``, for the same rules.

    MLflow compares texts with wildcards. Loopback names are listed with any port, because a port forwarded by ssh differs.
    MLflow's default would admit names such as 10.evil.example.
    """
    access = server_access("127.0.0.1", allowed)
    hosts = [*LOOPBACK_HOSTS, *(_bracket(host.name) for host in sorted(access.allowed, key=str))]
    patterns = [pattern for host in hosts for pattern in (host, f"{host.replace('[', '[[]')}:*")]
    pages = [f"http://{host}:{port}" for host in LOOPBACK_HOSTS]
    for host in sorted(access.allowed, key=str):
        suffix = f":{host.port}" if host.port else ""
        pages += [f"{scheme}://{_bracket(host.name)}{suffix}" for scheme in DEFAULT_PORTS]
    return ["--allowed-hosts", ",".join(patterns), "--cors-allowed-origins", ",".join(pages)]


LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")


def _read_allowed(text: str) -> Authority:
    host = authority(text) or authority(f"[{text}]")
    if host is None:
        raise UsageError(
            f"The allowed host {text!r} is not a host; write for example bench.example.org or bench.example.org:8443."
        )
    return host


def _bracket(name: str) -> str:
    return f"[{name}]" if ":" in name else name


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The IP address of a text, None for any other text."""
    try:
        return ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None


def _normal(texts: Iterable[str]) -> set[str]:
    """The IP addresses among the texts, in their normal form."""
    return {str(address) for text in texts if (address := _address(text)) is not None}


def _addresses(host: str) -> set[str]:
    try:
        entries = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return set()
    return _normal(str(entry[4][0]) for entry in entries)


class HostGuard:
    """An ASGI application behind ``access``: refused requests never reach it.

    ``refused`` turns a refusal into (media type, body).
    """

    def __init__(
        self,
        app: Callable[..., Awaitable[None]],
        access: Access,
        refused: Callable[[HostRefusal], tuple[str, bytes]] = lambda refusal: (
            "text/plain; charset=utf-8",
            refusal.message.encode(),
        ),
    ) -> None:
        self._app, self._access, self._refused = app, access, refused

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Refuse the request, or pass it on."""
        refusal = (
            self._access.refusal(scope["headers"])
            if scope["type"] in ("http", "websocket")
            else None
        )
        if refusal is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": refusal.message[:120]})
        else:
            media_type, body = self._refused(refusal)
            headers = [
                (b"content-type", media_type.encode()),
                (b"content-length", str(len(body)).encode()),
            ]
            await send(
                {"type": "http.response.start", "status": refusal.status, "headers": headers}
            )
            await send({"type": "http.response.body", "body": body})
