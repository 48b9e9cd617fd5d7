"""The command line: one module a verb; each calls one service and prints its result."""
