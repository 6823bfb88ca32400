"""Scenes for real agents and pools, and a way to their table on which calls go wrong: those of the tests of agents."""

from tests.integration.conftest import proxy, scene

__all__ = ["proxy", "scene"]
