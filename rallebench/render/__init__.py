"""Render values as text and HTML, and figures as SVG. Pure: no access to files, clocks or stores."""
