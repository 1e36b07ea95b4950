"""Flows under weight decay in dual variables."""
