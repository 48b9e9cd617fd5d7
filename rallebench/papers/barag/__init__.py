"""BARAG (Kenneweg et al. 2024): a boolean agent that reads passages only where it needs them, and a judge of its answers."""
