"""MLflow: finished runs, groups of runs, traces, prompts, models, and its own page."""
