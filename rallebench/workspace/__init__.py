"""A workspace: its files, the names that can be used in it, and opening objects by name."""
