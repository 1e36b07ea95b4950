"""The exact flow of matrix models, and the systems that it integrates."""
