"""R-Eval (Tu et al. 2024): the grid of workflows, models and tasks, and logs in its form."""

from rallebench.experiments.papers.reval import score as score
from rallebench.experiments.papers.reval import systems as systems
