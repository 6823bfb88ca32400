"""Tests of pure behaviour: no network but 127.0.0.1, no sleeping, own clocks."""
