"""RGB (Chen et al. 2023): its four tests, testbeds from an index, its own files of predictions."""

from rallebench.experiments.papers.rgb import from_index as from_index
from rallebench.experiments.papers.rgb import robustness as robustness
from rallebench.experiments.papers.rgb import score as score
