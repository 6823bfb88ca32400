"""Whole runs of the system in one thread: own clock, seeded chance, no network."""
