"""The flow of diagonal nets in their dual variables, where logarithms hold what float64 cannot."""
