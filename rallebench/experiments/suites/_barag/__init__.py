"""The pieces of the boolean-agent study (Kenneweg et al. 2024, arXiv:2402.16874): articles, agents, judgements, tables, curves."""
