"""Requests to OpenAI-compatible servers: endpoints, connections, limits and retries.

``httpcore2`` is imported when the first connection is made.
"""
