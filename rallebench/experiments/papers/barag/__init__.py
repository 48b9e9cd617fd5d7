"""BARAG (Kenneweg et al. 2024)."""

from rallebench.experiments.suites import barag_agreement as barag_agreement
from rallebench.experiments.suites import barag_curve as barag_curve
from rallebench.experiments.suites import barag_modes as barag_modes
from rallebench.experiments.suites import barag_tables as barag_tables
