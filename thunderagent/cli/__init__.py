"""The ``thunderagent`` command. Start reading at :mod:`thunderagent.cli.main`."""
