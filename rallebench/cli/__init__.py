"""The command line. Each verb has its own module, calls one service and prints the result."""
