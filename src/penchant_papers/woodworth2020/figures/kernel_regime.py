"""What Figure 6 calls the kernel regime, one border for all four panels.

W shows the grad distance, 1 - cosine between the tangent features at the start and at the end, and
names no border.
"""

INSIDE = 0.01  # at most 8 degrees: the tangent features have not turned
OUTSIDE = 0.1  # at least 26 degrees: they have
