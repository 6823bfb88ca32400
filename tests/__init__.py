"""The tests. One folder for each kind; what they share is in conftest.py and standins."""
