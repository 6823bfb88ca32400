"""What is generated around the Helm chart: its CRD, the table in its README, and the plain manifests that are rendered from it.

``make manifests`` writes all of it, and tests in ``tests/chart`` fail when something has drifted.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "thunderagent"
MANIFESTS = ROOT / "manifests"
