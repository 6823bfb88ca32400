"""Stand-ins for DynamoDB that tests run against on this machine, and clients that can reach nothing else."""
