"""Questions from templates over tables: reading the tables, the templates, and putting rows into them."""
