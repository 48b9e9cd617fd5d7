"""BARAG (Kenneweg et al. 2024): a boolean agent that reads passages only where it needs them, and a judge of its answers."""

from rallebench.experiments.papers.barag import agreement as agreement
from rallebench.experiments.papers.barag import curve as curve
from rallebench.experiments.papers.barag import modes as modes
from rallebench.experiments.papers.barag import tables as tables
