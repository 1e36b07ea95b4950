"""The lemmas and inequalities of the appendices, and the runs with which they are compared."""
