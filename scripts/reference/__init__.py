"""The pages of ``docs/`` that are made from the code: ``make docs`` writes them, and a test fails when one has drifted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from scripts.reference.metrics import metrics_page
from scripts.reference.pool import pool_page
from scripts.reference.settings import settings_page

DOCS = Path(__file__).parents[2] / "docs"

PAGES: Mapping[str, Callable[[], str]] = {
    "settings.md": settings_page,
    "pool.md": pool_page,
    "metrics.md": metrics_page,
}
"""The text of each page, by the name of its file in ``docs/``."""
