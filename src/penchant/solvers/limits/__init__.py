"""Limits of small starts and of slow phases: saddles that training visits, and slow flows."""
