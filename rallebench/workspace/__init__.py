"""A workspace: its files, what can be named in it, and how a name becomes an opened object."""
