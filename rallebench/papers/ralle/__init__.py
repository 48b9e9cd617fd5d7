"""KILT (Petroni et al. 2021) with RaLLe's chains and tables: the eleven sets, their files and their chains."""
