"""The central flow of gradient descent: its averaged path, and the oscillation about it."""
