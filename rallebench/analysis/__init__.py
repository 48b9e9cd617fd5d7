"""Analyses of stored runs: paired comparisons, failure waterfalls, costs, exports. Independent of any user
interface.
"""
