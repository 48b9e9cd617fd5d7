"""Experiments: what runs over questions more than once, and the papers' suites."""
