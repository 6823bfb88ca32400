"""Figures about ThunderAgent, measured side by side with what they are compared to: ``python -m benchmarks``."""
