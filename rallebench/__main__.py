"""``python -m rallebench VERB …``."""

from rallebench.cli import main

raise SystemExit(main())
