"""``python -m thunderagent``: the command line, where its script is not on the path."""

from thunderagent.cli.main import main

if __name__ == "__main__":
    main()
