"""A room for each paper: its suites, scores, judges, tables, prediction files, builders, and the figures that it prints.

A paper is a plug-in: it registers what it adds, and nothing outside this package names it. A registry imports those modules of
each room whose names it declares (``Registry.rooms``), so a new folder here needs no list to edit.
"""
