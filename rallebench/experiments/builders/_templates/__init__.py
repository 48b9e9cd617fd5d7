"""Questions from templates and tables: reading both, and filling templates with rows."""
