"""Whether a Prometheus has what dashboards and alerts ask for, after a load that has touched everything."""

from __future__ import annotations

import re

from tests.observability.prometheus import Prometheus, hurried
from tests.observability.queries import queries
from tests.observability.tools import RULES


def empty_panels(seen: Prometheus, seconds: float) -> list[str]:
    """The queries of panels that have had no series in the last seconds."""
    asked = {each: each.filled("5s", f"{seconds:.0f}s") for each in queries()}
    return [str(each) for each, expr in asked.items() if not seen.query_range(expr, seconds)]


def empty_selectors_of_alerts(seen: Prometheus, seconds: float) -> list[str]:
    """What alerts look at and was not there in the last seconds. Expressions of alerts that did not fire give nothing, by their
    nature; so it is their selectors that are asked for."""
    exprs = "\n".join(line for line in hurried(RULES.read_text()).splitlines() if not line.strip().startswith("#"))
    selectors = set(re.findall(r"\bthunderagent_\w+(?:\{[^}]*\})?", exprs))
    assert len(selectors) > 20
    return [selector for selector in selectors if not seen.query_range(selector, seconds)]
