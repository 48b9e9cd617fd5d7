"""Benchmarks beyond the five papers, a file each, over data that a user fetches."""
