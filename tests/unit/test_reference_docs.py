"""The pages of docs/ that are made from the code say what the code says."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from scripts.reference import DOCS, PAGES


@pytest.mark.parametrize(("name", "page"), PAGES.items(), ids=PAGES)
def test_a_generated_page_is_as_the_code_makes_it(name: str, page: Callable[[], str]) -> None:
    written = (DOCS / name).read_text(encoding="utf-8")
    assert written == page(), f"docs/{name} has drifted from the code: run `make docs` and look at the difference"
