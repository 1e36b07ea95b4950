"""Figures 1 to 9, the nets and data that they train beside them."""
