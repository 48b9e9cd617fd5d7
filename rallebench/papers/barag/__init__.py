"""BARAG (Kenneweg et al. 2024): a boolean agent that reads passages only when it needs them, and a judge of its answers."""
