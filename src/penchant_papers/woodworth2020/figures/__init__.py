"""Figures 1 to 9, and the nets and data that they use."""
