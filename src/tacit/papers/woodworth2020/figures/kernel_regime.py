"""What Figure 6 (c) and (d) call the kernel regime, in one number.

W shows the grad distance, 1 - cosine between the tangent features at the start and at the end, and
names no border. Kernel machines lie well below the one taken here and every net as printed above.
"""

INSIDE = 0.01  # grad distance of at most 8 degrees: the tangent features have not turned
OUTSIDE = 0.1  # of at least 26 degrees: they have
