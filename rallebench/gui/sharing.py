"""The shared link: a tunnel of Gradio from an address of gradio.live to this page."""

from __future__ import annotations

import secrets

from gradio import networking

from rallebench.core.errors import UsageError


def open_tunnel(host: str, port: int) -> str:
    """Open a tunnel to the page at ``port`` and return its public address, valid until the program ends.

    Gradio downloads the program of the tunnel (frpc) when it is first used. Raises UsageError.
    """
    local = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    try:
        address = networking.setup_tunnel(local, port, secrets.token_urlsafe(32), None, None)
    except Exception as error:  # the network's, the system's, and Gradio's own
        cause = error.__cause__ or error
        reason = str(cause).strip().partition("\n")[0].rstrip(":. ")[:200] or type(cause).__name__
        raise UsageError(
            f"The page could not be shared ({reason}); check the connection to gradio.live, or leave out --share."
        ) from None
    return f"https://{address.partition('://')[2] or address}".rstrip("/")
