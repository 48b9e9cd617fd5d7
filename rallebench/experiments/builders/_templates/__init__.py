"""Questions from templates over tables: reading tables and templates, and filling templates with rows."""
