"""Build, check, estimate, import and reuse indexes and the vectors they need."""
