"""``mcp``: serve programs that speak the Model Context Protocol."""

from __future__ import annotations

import argparse
from importlib.util import find_spec

from rallebench.cli.flags import ALLOWED_HOST, flag, switch
from rallebench.cli.printing import say
from rallebench.cli.verbs import VERBS, open_workbench
from rallebench.core.errors import MissingPackageError, UsageError
from rallebench.core.hosts import server_access
from rallebench.core.listening import KEY_VARIABLE, key_for, listening_on

HOST, PORT = "127.0.0.1", 8002


@VERBS.register(
    "mcp",
    about="give an assistant tools: search, ask, run and compare, over the Model Context Protocol",
    example="rallebench mcp --workspace ~/bench --allow-run",
    order=98.5,
    flags=(
        switch("--allow-run", "also let it ask models and start runs, which may cost money"),
        switch("--http", "serve over HTTP at /mcp instead of stdin and stdout"),
        flag(
            "--host",
            help=f"with --http; another than this machine's needs {KEY_VARIABLE} (default: {HOST})",
        ),
        flag("--port", help=f"with --http (default: {PORT})", type=int),
        ALLOWED_HOST,
    ),
)
def mcp(args: argparse.Namespace) -> None:
    """Serve until the client closes stdin; over HTTP, until interrupted."""
    if find_spec("mcp") is None:
        raise MissingPackageError("mcp", "and this verb needs it")
    for_http = {"--host": args.host, "--port": args.port, "--allowed-host": args.allowed_host}
    unused = [name for name, value in for_http.items() if value not in (None, [])]
    if unused and not args.http:
        raise UsageError(f"{unused[0]} needs --http.")
    args.read_only = not args.allow_run
    from rallebench.remote.mcp_server import McpServer

    if not args.http:
        McpServer(open_workbench(args)).serve_stdio(args.stdout)
        return
    host = args.host or HOST
    access = server_access(host, args.allowed_host)
    with listening_on(host, PORT if args.port is None else args.port) as listening:
        server = McpServer(open_workbench(args))
        say(f"Serving http://{host}:{listening.getsockname()[1]}/mcp (stop with Ctrl-C)")
        server.serve_http(listening, key_for(host), access)
