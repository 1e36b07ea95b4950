"""Nets that are not linear: attention, margins of their own norm, features one by one."""
