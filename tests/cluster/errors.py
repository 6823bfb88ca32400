"""What can go wrong with a test cluster, in words for whoever typed the command."""

from __future__ import annotations


class ClusterError(Exception):
    """A cluster cannot be had, used or removed. The text names the culprit and says what to do; the command line prints it."""


class CommandFailed(ClusterError):
    """A program that was run ended with an error. The text holds the last lines that it wrote."""
