"""R-Eval (Tu et al. 2024): the grid of workflows, models and tasks, and logs in its form."""

PAPER = "arXiv:2406.11681"
READY = "Without a download: the starter's stand-ins of the tasks, in English, and BM25, in Chinese, too; choose a model that acts."
"""What works without a download."""
