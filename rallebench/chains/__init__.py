"""Chains: their template language, the request of one action, and a whole chain as a flow."""
