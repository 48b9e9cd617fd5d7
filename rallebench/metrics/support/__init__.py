"""Support of answers by the passages of their prompts: sentences, citations and quotations."""
