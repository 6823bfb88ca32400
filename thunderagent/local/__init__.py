"""What runs on one machine: the embedded DynamoDB, and the pool whose agents are local processes."""
