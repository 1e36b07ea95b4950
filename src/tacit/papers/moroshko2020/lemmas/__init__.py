"""The lemmas and inequalities of the appendices, and the training that they are held against."""
