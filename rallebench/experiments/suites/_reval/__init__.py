"""What the suite ``reval`` is made of: its tasks, its grid, its tables."""
