"""Log finished runs, groups of runs, traces, prompts and models to MLflow, and serve MLflow's own page."""
