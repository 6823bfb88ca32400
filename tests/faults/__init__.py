"""Faults between a client and DynamoDB, and tests of what users then see."""
