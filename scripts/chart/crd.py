"""The chart's template of the CustomResourceDefinition, from the one that the pool's fields make."""

from __future__ import annotations

import re
from typing import Any

import yaml

from controller.resource import custom_resource_definition
from scripts.chart import CHART

TEMPLATE = CHART / "templates" / "crds" / "thunderagentpools.yaml"

_HEAD = """\
{{- /* Made from thunderagent/pool and controller/resource.py by `make manifests`: change these, not this. */}}
{{- if .Values.crds.install }}
"""
_METADATA = """\
  labels:
    {{- include "thunderagent.labels" . | nindent 4 }}
  {{- if .Values.crds.keep }}
  annotations:
    # Without it an uninstall, or crds.install=false, would remove every pool of the cluster.
    helm.sh/resource-policy: keep
  {{- end }}
"""
_TAIL = "{{- end }}\n"


def template() -> str:
    """The text of the template."""
    before, after = re.split(r"(?<=^  name: thunderagentpools\.thunderagent\.dev\n)", _yaml(), maxsplit=1, flags=re.MULTILINE)
    return _HEAD + _literal(before) + _METADATA + _literal(after) + _TAIL


def _yaml() -> str:
    manifest: dict[str, Any] = custom_resource_definition()
    return yaml.dump(manifest, Dumper=_Dumper, sort_keys=False, width=120, allow_unicode=True)


def _literal(text: str) -> str:
    """The text as a template that renders to it: two braces in a rule or a description are not Helm's."""
    return text.replace("{{", '{{ "{{" }}')


class _Dumper(yaml.SafeDumper):
    """Without anchors, which few who read a manifest know."""

    def ignore_aliases(self, data: Any) -> bool:
        return True
