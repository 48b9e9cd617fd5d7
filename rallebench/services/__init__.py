"""Services shared by the command line, the web page and the Python API: models, runs, data, questions, jobs."""
