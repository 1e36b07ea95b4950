"""A saved study on the page: its grid, its diagram, and the cell that is chosen."""
