"""Experiments that take too long for the default tests even at the size "tiny".

The tests of their papers test the checks.
"""

SLOW = {"W-B", "W-F6d", "W-F8", "L-F3b", "N-F1", "N-F3", "N-F-alg"}
