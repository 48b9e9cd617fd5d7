"""BrowseComp-Plus: hard questions over a fixed corpus (Chen et al. 2025)."""
