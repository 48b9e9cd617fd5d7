"""RGB (Chen et al. 2023): its four tests, testbeds built from an index, and its own prediction files."""
