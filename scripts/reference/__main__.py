"""``python -m scripts.reference``: write the pages."""

from scripts.reference import DOCS, PAGES

for name, page in PAGES.items():
    (DOCS / name).write_text(page(), encoding="utf-8")
    print(f"docs/{name}")
