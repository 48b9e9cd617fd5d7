"""Chains: their template language, what one action is asked, and a whole chain as a flow."""
