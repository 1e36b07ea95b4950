"""The test error before there are data, for regression, classification and matrices."""
