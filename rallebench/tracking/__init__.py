"""What happened, sent to MLflow: finished runs, traces of single questions, and its own page."""
