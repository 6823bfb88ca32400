"""``python -m scripts.chart``: write all of it."""

from scripts.chart import MANIFESTS, ROOT, crd, values
from scripts.chart.helm import helm
from scripts.chart.rendered import VARIANTS, render

for path, text in {crd.TEMPLATE: crd.template, values.README: values.readme}.items():
    path.write_text(text(), encoding="utf-8")
    print(path.relative_to(ROOT))
program = helm()
for name, variant in VARIANTS.items():
    (MANIFESTS / name).write_text(render(program, variant), encoding="utf-8")
    print(f"manifests/{name}")
