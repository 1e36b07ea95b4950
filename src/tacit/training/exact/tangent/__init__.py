"""The exact flow of small networks, in steps in which the tangent kernel acts exactly."""
