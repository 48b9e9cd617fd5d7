"""CRUD-RAG (Lyu et al. 2024): six tasks on Chinese news, its grid over retrievers and models, and RAGQuestEval."""

from rallebench.experiments.papers.crud import grid as grid
from rallebench.experiments.papers.crud import score as score
from rallebench.experiments.papers.crud import suites as suites
