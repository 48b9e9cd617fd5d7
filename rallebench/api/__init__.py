"""The Python API: a front end of ``services`` for scripts and notebooks. ``rallebench`` itself exports its names."""
