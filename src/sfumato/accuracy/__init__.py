"""How far released values stray from the true ones. No privacy proof depends on this package."""
