"""RGB (Chen et al. 2023): its four tests, testbeds from an index, its own files of predictions."""
