"""KILT (Petroni et al. 2021) with RaLLe's chains and tables: the eleven sets, their files, their chains."""

from rallebench.experiments.papers.kilt import suites as suites
