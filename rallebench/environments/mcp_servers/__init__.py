"""Servers of the Model Context Protocol (MCP) whose tools an agent may call."""
