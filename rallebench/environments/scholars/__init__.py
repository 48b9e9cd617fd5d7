"""The scholar table: import from files, search, and the answers of its seven calls."""
