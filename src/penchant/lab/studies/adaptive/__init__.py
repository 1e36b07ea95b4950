"""Studies that choose their cells in rounds: bisection for a threshold, refinement of a grid."""
