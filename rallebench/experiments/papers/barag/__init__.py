"""BARAG (Kenneweg et al. 2024): a boolean agent that reads passages only where it needs them, and a judge of its answers."""

PAPER = "arXiv:2402.16874"
