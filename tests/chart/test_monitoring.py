"""What the chart adds for Prometheus and Grafana: nothing unless it is asked for."""

from __future__ import annotations

import json

import yaml

from scripts.chart import CHART
from tests.chart.chart import Chart, named, of_kind

MONITORING = ("PrometheusRule", "ServiceMonitor", "PodMonitor")
ALL = "--set=alerts.enabled=true,dashboards.enabled=true,metrics.serviceMonitor.enabled=true,metrics.podMonitor.enabled=true"
ALERTS = [
    rule["alert"]
    for group in yaml.safe_load((CHART / "rules" / "thunderagent.yaml").read_text())["groups"]
    for rule in group["rules"]
]


def test_nothing_that_needs_other_crds_is_there_by_default(chart: Chart) -> None:
    assert of_kind(chart.objects(), *MONITORING) == []


def test_the_sidecar_finds_each_dashboard_by_its_label(chart: Chart) -> None:
    maps = [found for found in of_kind(chart.objects(ALL), "ConfigMap") if "-dashboard-" in found["metadata"]["name"]]
    assert {json.loads(text)["uid"] for found in maps for text in found["data"].values()} == {
        "thunderagent-pools",
        "thunderagent-operator",
    }
    assert all(found["metadata"]["labels"]["grafana_dashboard"] == "1" for found in maps)


def test_monitors_keep_the_namespace_of_the_pool(chart: Chart) -> None:
    objects = chart.objects(ALL)
    service, pods = named(objects, "ServiceMonitor"), named(objects, "PodMonitor", "pools-thunderagent-agents")
    assert [each["honorLabels"] for each in (*service["spec"]["endpoints"], *pods["spec"]["podMetricsEndpoints"])] == [
        True,
        True,
    ]
    assert service["spec"]["selector"]["matchLabels"].items() <= named(objects, "Service")["metadata"]["labels"].items()
    (port,) = named(objects, "Service")["spec"]["ports"]
    assert service["spec"]["endpoints"][0]["port"] == port["name"]


def test_agents_are_looked_for_where_pools_are_scaled(chart: Chart) -> None:
    scoped = named(chart.objects(ALL, "--set=scope.namespaces={a,b}"), "PodMonitor", "pools-thunderagent-agents")
    assert scoped["spec"]["namespaceSelector"] == {"matchNames": ["a", "b"]}
    anywhere = named(chart.objects(ALL), "PodMonitor", "pools-thunderagent-agents")
    assert anywhere["spec"]["namespaceSelector"] == {"any": True}


def test_alerts_can_be_left_out_and_changed_by_their_names(chart: Chart) -> None:
    flags = (
        "--set=alerts.disabled={ThunderAgentClockOffset}",
        "--set=alerts.overrides.ThunderAgentNoAgent.for=30m",
        "--set=alerts.overrides.ThunderAgentNoAgent.labels.team=data",
        "--set=alerts.runbookBase=https://example.com/",
    )
    rules = {
        rule["alert"]: rule
        for group in named(chart.objects(ALL, *flags), "PrometheusRule")["spec"]["groups"]
        for rule in group["rules"]
    }
    assert list(rules) == [name for name in ALERTS if name != "ThunderAgentClockOffset"]
    changed = rules["ThunderAgentNoAgent"]
    assert (changed["for"], changed["labels"]) == ("30m", {"severity": "critical", "team": "data"})
    assert changed["annotations"]["runbook_url"] == "https://example.com/docs/runbooks/no-agent.md"


def test_an_alert_that_does_not_exist_is_refused(chart: Chart) -> None:
    assert "at '/alerts/disabled/0'" in chart.refusal("--set=alerts.disabled={ThunderAgentNoSuch}")


def test_the_values_of_everything_turn_on_all_of_it_with_their_own_labels(chart: Chart) -> None:
    objects = chart.objects(f"--values={CHART / 'ci' / 'everything-values.yaml'}")
    monitors = of_kind(objects, *MONITORING)
    assert sorted(each["kind"] for each in monitors) == sorted(MONITORING)
    assert {each["metadata"]["labels"]["release"] for each in monitors} == {"prometheus"}
    (service,), (pods,) = of_kind(objects, "ServiceMonitor"), of_kind(objects, "PodMonitor")
    endpoints = [*service["spec"]["endpoints"], *pods["spec"]["podMetricsEndpoints"]]
    assert {each["interval"] for each in endpoints} == {"30s"}
    assert pods["spec"]["namespaceSelector"] == {"matchNames": ["default", "team-a"]}


def test_the_values_of_everything_put_dashboards_and_alerts_where_they_say(chart: Chart) -> None:
    objects = chart.objects(f"--values={CHART / 'ci' / 'everything-values.yaml'}")
    maps = [found["metadata"] for found in of_kind(objects, "ConfigMap") if "-dashboard-" in found["metadata"]["name"]]
    assert [(each["namespace"], each["labels"]["grafana_dashboard"]) for each in maps] == [("team-a", "yes")] * 2
    assert {each["annotations"]["grafana_folder"] for each in maps} == {"ThunderAgent"}
    (alerts,) = of_kind(objects, "PrometheusRule")
    rules = {rule["alert"]: rule for group in alerts["spec"]["groups"] for rule in group["rules"]}
    assert list(rules) == [name for name in ALERTS if name != "ThunderAgentNoAgent"]
    assert rules["ThunderAgentOperatorWithoutLeader"]["for"] == "10m"
    pages = {rule["annotations"]["runbook_url"].rpartition("/")[0] for rule in rules.values()}
    assert pages == {"https://example.com/thunderagent/docs/runbooks"}
