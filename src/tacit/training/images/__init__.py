"""Nets on images, as step-by-step methods see them."""
