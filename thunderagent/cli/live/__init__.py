"""Live views: what is happening, collected into frozen snapshots, drawn on a terminal or told in plain lines.

``snapshot`` holds the values; ``view`` (rich) and ``lines`` (plain text) are pure functions of them; ``collect`` makes them
from a pool and a table; ``screen`` puts them where the user looks.
"""
