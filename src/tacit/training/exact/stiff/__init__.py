"""A stiff integrator of any model with few samples."""
