"""``render``: render one template."""

from __future__ import annotations

import argparse
from pathlib import Path

from rallebench.cli.flags import flag, many
from rallebench.cli.verbs import VERBS, Result
from rallebench.views.answers import render_template

EARLIER = ("prompt", "response", "wiki-id-title")


@VERBS.register(
    "render",
    about="interpret one template, run nothing",
    example="rallebench render --template '{question}?' --dialect fstring --question 'Who'",
    order=4,
    flags=(
        flag("--template", "T", required=True),
        flag("--dialect", choices=("fstring", "eval"), default="fstring"),
        flag("--question", "Q", default=""),
        *(many(f"--{name}", name[0].upper(), "once per earlier action") for name in EARLIER),
        flag("--documents", "FILE", "JSON: per action a list of passages", type=Path),
    ),
)
def render(args: argparse.Namespace) -> Result:
    """Render one template."""
    names = [name.replace("-", "_") for name in EARLIER]
    earlier = {name: getattr(args, name) for name in names}
    prompt = render_template(args.template, args.dialect, args.question, earlier, args.documents)
    return Result({"prompt": prompt}, (prompt,))
