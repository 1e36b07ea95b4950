"""The test error of minimisers for Gaussian data, from equations in a few numbers."""
