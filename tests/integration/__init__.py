"""Tests that run real servers and processes on this machine."""
