"""R-Eval (Tu et al. 2024): a grid of workflows, models and tasks, and logs in its form."""
