"""Parametrizations: where training starts and what the parameters compute."""
