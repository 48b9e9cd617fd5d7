"""``serve``: serve chains through an OpenAI-compatible endpoint."""

from __future__ import annotations

import argparse

from rallebench.cli.flags import ALLOWED_HOST, flag
from rallebench.cli.printing import say
from rallebench.cli.verbs import VERBS, open_workbench
from rallebench.core.errors import UsageError
from rallebench.core.hosts import server_access
from rallebench.core.listening import KEY_VARIABLE, listening_on
from rallebench.server.endpoint import serve


@VERBS.register(
    "serve",
    about="answer other programs: a chain as an OpenAI-compatible endpoint",
    example="rallebench serve --chain starter --port 8001",
    order=98,
    flags=(
        flag(
            "--chain",
            "FILE|NAME",
            "may be given several times; the first answers by default",
            action="append",
            required=True,
        ),
        flag(
            "--host", help=f"another than this machine's needs {KEY_VARIABLE}", default="127.0.0.1"
        ),
        flag("--port", type=int, default=8001),
        ALLOWED_HOST,
    ),
)
def serve_(args: argparse.Namespace) -> None:
    """Load the chains and serve requests until interrupted."""
    workbench = open_workbench(args)
    chains = [workbench.workspace.chain(name) for name in args.chain]
    names = {chain.name: chain for chain in chains}
    if len(names) < len(chains):
        raise UsageError(
            f"Two chains have one name ({', '.join(chain.name for chain in chains)}); clients tell them apart by it."
        )
    access = server_access(args.host, args.allowed_host)
    holder = f"the server of {', '.join(names)} (rallebench serve)"
    with listening_on(args.host, args.port) as listening, workbench.models.lease(holder) as lease:
        for chain in chains:
            for event in lease.load_for(chain.llms, chain.retrievers):
                say(event.message)
        port = listening.getsockname()[1]
        say(f"Answering as {', '.join(names)} on http://{args.host}:{port}/v1 (stop with Ctrl-C)")
        serve(workbench.asking, names, args.host, listening, access)
