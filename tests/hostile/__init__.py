"""Input that nobody means well: in a shared table, in a pool's file, on a command line. Seeded, so the same each time."""
