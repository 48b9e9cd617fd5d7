"""CRUD-RAG (Lyu et al. 2024)."""

from rallebench.experiments.suites import crud as crud
from rallebench.experiments.suites import crud_grid as crud_grid
from rallebench.experiments.suites import crud_score as crud_score
