"""Open the workbench: ``python app.py [--host 127.0.0.1] [--port 7860] [--workspace DIR] [--auth user:password]``."""

from __future__ import annotations

import sys

from rallebench.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main(["ui", *sys.argv[1:]]))
