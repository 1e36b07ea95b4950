"""Numbers read off arrays: pure functions, no training."""
