"""Values as text, HTML, CSV, LaTeX, plotly and SVG. Pure: nothing here reads a file, a clock or a store."""
