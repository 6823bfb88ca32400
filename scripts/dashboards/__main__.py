"""``python -m scripts.dashboards``: write the dashboards."""

from scripts.dashboards import DASHBOARDS, FOLDER

FOLDER.mkdir(exist_ok=True)
for name, made in DASHBOARDS.items():
    (FOLDER / name).write_text(made(), encoding="utf-8")
    print(f"charts/thunderagent/dashboards/{name}")
