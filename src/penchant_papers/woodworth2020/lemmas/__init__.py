"""Lemmas 5 to 8 and 11 to 13."""
