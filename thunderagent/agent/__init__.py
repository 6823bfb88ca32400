"""One agent: it polls, claims, holds leases, has handlers run in child processes, and drains."""
