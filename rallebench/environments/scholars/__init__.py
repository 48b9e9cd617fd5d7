"""The scholar table: how it is filled from files, how it is searched, and what its seven calls answer."""
