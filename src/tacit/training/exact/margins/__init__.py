"""Flows on labels, whose clock is the smoothed margin."""
