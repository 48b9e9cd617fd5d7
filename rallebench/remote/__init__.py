"""Calls that other programs make: over Gradio's endpoints and over MCP."""
