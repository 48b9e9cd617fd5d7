"""``python -m rallebench VERB …``."""

import sys

try:
    from rallebench.cli.main import main

    code = main()
except KeyboardInterrupt:  # while it was still being read, before main could say so
    print("Stopped by you; nothing was begun.", file=sys.stderr)
    code = 130
raise SystemExit(code)
