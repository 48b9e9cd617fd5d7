"""Values as text and HTML, figures as SVG. Pure: nothing here reads a file, a clock or a store."""
