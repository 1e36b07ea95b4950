"""Recorded runs with settings drawn at random, rules that say when they grok, and their scores."""
