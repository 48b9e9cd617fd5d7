"""Improving a chain: variants compete on some articles, and the best one is proved on articles that none of them has seen."""
