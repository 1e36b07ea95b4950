"""The models that a watch can measure, in PyTorch and in JAX, and the choice between them."""
