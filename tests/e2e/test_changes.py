"""Changes from outside: of a pool's template, of the chart, of the operator itself."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.e2e.ground import working
from tests.e2e.release import CHART
from tests.e2e.stage import POOL, Stage

CRD = "thunderagentpools.thunderagent.dev"
ADDED = "A field of the next version."


def test_a_change_of_the_template_under_load_brings_new_pods_and_interrupts_no_run(stage: Stage) -> None:
    stage.declare(scaling={"minReplicas": 4, "maxReplicas": 4})
    tasks = stage.enqueue(working(4, 24))
    stage.until("four runs", 60, lambda: len(stage.history.runs) >= 4)
    before = stage.history.pods
    stage.declare(scaling={"minReplicas": 4, "maxReplicas": 4}, template=stage.template(VERSION="2"))
    stage.until_done(tasks, 120)
    stage.until_pods(4, 60)
    pods = {pod["metadata"]["name"] for pod in stage.pods()}
    assert not before & pods
    history = stage.history
    assert history.pods - before, "no new pod has run a task"
    assert history.unfinished == []
    assert len(history.runs) == len(tasks)


def test_a_pool_outlives_an_upgrade_with_another_crd_and_the_release_itself(stage: Stage, tmp_path: Path) -> None:
    stage.declare(scaling={"minReplicas": 2, "maxReplicas": 4})
    tasks = stage.enqueue(working(25, 2))
    stage.until_pods(2, 60)
    before = identities(stage)

    stage.operator.install(chart_with_another_crd(tmp_path / "chart"), podAnnotations={"changed": "true"})
    assert ADDED in stage.kubectl("get", "crd", CRD, "--output=json")
    stage.until_seen()
    assert identities(stage) == before

    stage.operator.uninstall()
    assert stage.kubectl("get", POOL, "work", "--output=name").strip()
    assert identities(stage) == before
    tasks += stage.enqueue(working(5, 30))
    stage.operator.install()
    stage.until_replicas(4, 60)
    assert before.items() <= identities(stage).items()
    stage.until_done(tasks, 120)
    assert stage.history.unfinished == []


def identities(stage: Stage) -> dict[str, tuple[str, int]]:
    """Uid and restarts of each pod of the pool."""
    return {
        pod["metadata"]["name"]: (pod["metadata"]["uid"], pod["status"]["containerStatuses"][0]["restartCount"])
        for pod in stage.pods()
    }


def chart_with_another_crd(copy: Path) -> Path:
    """The chart as a next version may have it: the CRD with one more field."""
    shutil.copytree(CHART, copy)
    file = copy / "templates" / "crds" / "thunderagentpools.yaml"
    text = file.read_text()
    known = "Seconds between two readings of the backlog."
    assert known in text
    file.write_text(text.replace(known, f"{known} {ADDED}"))
    return copy
