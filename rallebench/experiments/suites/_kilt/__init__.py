"""The pieces of the KILT suites: the eleven sets, their files, their chains, RaLLe's tables."""
