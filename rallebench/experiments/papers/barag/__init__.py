"""BARAG (Kenneweg et al. 2024): a boolean agent that reads passages only where it needs them, and a judge of its answers."""

PAPER = "arXiv:2402.16874"
READY = "Without a download: BM25 in English and in Chinese, MiniLM in English; choose a model that decides and judges."
"""What works without a download."""
