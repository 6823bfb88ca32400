"""The plain manifests: the chart as Helm renders it, without what only Helm needs."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from scripts.chart import CHART

RELEASE = "thunderagent"
NAMESPACE = "thunderagent-system"

_NOTE = "# Rendered from charts/thunderagent by `make manifests`: change that, not this.\n"
_HELMS = ("helm.sh/chart", "helm.sh/resource-policy")


@dataclass(frozen=True, slots=True)
class Variant:
    """One file: what it is for, and the flags of ``helm template`` that make it."""

    purpose: str
    flags: Sequence[str] = ()
    kinds: Sequence[str] = ()
    """Kinds to keep; none: all."""


NAMESPACED = ("--set=scope.namespaces={default}", "--set=crds.install=false", "--set=rbac.aggregate=false")

VARIANTS = {
    "crd.yaml": Variant("The kind ThunderAgentPool alone.", kinds=("CustomResourceDefinition",)),
    "install.yaml": Variant("Everything: the kind, and an operator for the pools of all namespaces."),
    "install-namespaced.yaml": Variant(
        "An operator for the pools of the namespace default alone, without rights in the cluster. Needs crd.yaml.", NAMESPACED
    ),
}
"""By the name of the file in ``manifests/``."""


def render(helm: Path, variant: Variant) -> str:
    """The text of the file. Raises CalledProcessError where Helm fails."""
    command = [str(helm), "template", RELEASE, str(CHART), f"--namespace={NAMESPACE}", "--skip-tests", *variant.flags]
    rendered = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    objects = [*_namespace(variant), *_chosen(rendered, variant)]
    documents = (yaml.safe_dump(_plain(manifest), sort_keys=False, width=120, allow_unicode=True) for manifest in objects)
    return f"{_NOTE}# {variant.purpose}\n---\n" + "---\n".join(documents)


def _chosen(rendered: str, variant: Variant) -> Iterator[dict[str, Any]]:
    for manifest in yaml.load_all(rendered, Loader=yaml.CSafeLoader):
        if manifest and (not variant.kinds or manifest["kind"] in variant.kinds):
            yield manifest


def _namespace(variant: Variant) -> Iterator[dict[str, Any]]:
    """The operator's own, with the strictest level of Pod Security, which it meets."""
    if not variant.kinds:
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}


def _plain(manifest: dict[str, Any]) -> dict[str, Any]:
    """Without labels and annotations that are about Helm."""
    for metadata in _metadata(manifest):
        labels = metadata.get("labels", {})
        labels.pop("app.kubernetes.io/managed-by", None)
        for holder in (labels, metadata.get("annotations", {})):
            for name in _HELMS:
                holder.pop(name, None)
        for name in ("labels", "annotations"):
            if metadata.get(name) == {}:
                del metadata[name]
    return manifest


def _metadata(manifest: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield manifest["metadata"]
    template = manifest.get("spec", {}).get("template", {})
    if "metadata" in template:
        yield template["metadata"]
