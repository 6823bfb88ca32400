"""``thunderagent report``: from samples or a Prometheus to the figures of a page, and what is said where there is none."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs
from xml.etree import ElementTree

import pytest

from tests.builders import NOW
from tests.unit.cli_world import World
from thunderagent.errors import InvalidInput
from thunderagent.report.charts import Unit, charts
from thunderagent.report.figures import key_figures
from thunderagent.report.fromsamples import record_of_samples
from thunderagent.report.make import Wanted, record_from_file
from thunderagent.report.page import report_page
from thunderagent.report.prometheus import address
from thunderagent.report.quantile import quantile
from thunderagent.report.record import Record, period
from thunderagent.report.sample import VERSION, PoolSample, sample_line
from thunderagent.report.samplefile import SampleFile, earlier, read_file
from thunderagent.report.scale import time_ticks, value_ticks

BEGAN = NOW - 600

WAITS = {"1.0": 2.0, "10.0": 8.0, "+Inf": 10.0}
"""Two starts within a second, six more within ten, two later."""


def sample(at: float, **changes: Any) -> PoolSample:
    """A cycle of the pool crew that found nothing to do."""
    quiet: dict[str, Any] = {
        "ready": 0,
        "waiting": 0,
        "running": 0,
        "expired": 0,
        "oldest": 0.0,
        "wanted": 0,
        "was": 0,
        "desired": 0,
        "available": 0,
        "reason": "NoWork",
        "sentence": "Stays at 0: no work was found.",
        "conditions": {"Ready": True, "Active": False},
    }
    fixed: dict[str, Any] = {
        "sample": VERSION,
        "at": at,
        "began": BEGAN,
        "pool": "crew",
        "starting": 0,
        "minimum": 0,
        "maximum": 4,
    }
    return PoolSample(**fixed | quiet | changes)


BUSY = {"ready": 12, "running": 3, "oldest": 75.5, "wanted": 2, "was": 2, "desired": 2, "reason": "Backlog"}

STORY = [
    sample(NOW - 50),
    sample(NOW - 40, **BUSY | {"was": 0}, sentence="From 0 to 2: 12 ready ask for 2."),
    sample(
        NOW - 30,
        **BUSY | {"ready": 4},
        available=2,
        sentence="Stays at 2.",
        tasks={"success": 5.0, "failed": 1.0},
        errors={"ValueError (failed)": 1.0},
        waits=WAITS,
    ),
    sample(
        NOW - 20,
        ready=None,
        waiting=None,
        running=None,
        expired=None,
        oldest=None,
        wanted=None,
        was=2,
        desired=2,
        available=2,
        reason="ReadFailed",
        problem="StoreThrottled",
        conditions={"Ready": False, "Active": False},
        tasks={"success": 6.0, "failed": 1.0},
        errors={"ValueError (failed)": 1.0},
        waits=WAITS,
    ),
    sample(NOW - 10, was=2, available=1, sentence="From 2 to 0: no work.", tasks={"success": 9.0, "failed": 1.0}, waits=WAITS),
]
"""A pool that grew to two agents, could not be read once, and went back to zero: nine tasks well, one FAILED."""


def write(path: Path, samples: list[PoolSample]) -> Path:
    path.write_bytes(b"".join(map(sample_line, samples)))
    return path


def story() -> Record:
    return record_of_samples(STORY, period(NOW - 60, NOW, NOW, finest=10), "the story")


def told(record: Record) -> dict[str, tuple[str, str]]:
    return {each.label: (each.value, each.note) for each in key_figures(record)}


# --- from samples -------------------------------------------------------------------------------------------------------


def test_gauges_have_the_highest_value_of_each_step_and_none_where_nothing_was_read() -> None:
    record = story()
    assert record.period.count == 6
    assert record.gauges["ready"] == [0, 12, 4, None, 0, 0]
    assert record.gauges["desired"] == [0, 2, 2, 2, 0, 0]


def test_a_pool_that_is_silent_for_longer_than_a_reading_may_take_is_not_known() -> None:
    record = record_of_samples(
        [sample(NOW - 95, ready=5), sample(NOW - 5, ready=2)], period(NOW - 100, NOW, NOW, finest=10), ""
    )
    assert record.gauges["ready"] == [5, 5, 5, 5, 5, 5, None, None, None, 2]


def test_counts_are_what_was_added_in_each_step() -> None:
    outcomes = story().outcomes
    assert outcomes.each == {"success": [0, 0, 5, 1, 3, 0], "failed": [0, 0, 1, 0, 0, 0]}
    assert outcomes.totals == {"success": 9, "failed": 1}


def test_counts_begin_anew_with_the_pools_process() -> None:
    again = [*STORY, sample(NOW - 1, began=NOW - 8, tasks={"success": 2.0})]
    record = record_of_samples(again, period(NOW - 60, NOW, NOW, finest=10), "")
    assert record.outcomes.totals == {"success": 11, "failed": 1}


def test_what_was_counted_before_the_first_sample_is_not_of_this_time() -> None:
    record = record_of_samples(STORY, period(NOW - 25, NOW, NOW, finest=10), "")
    assert record.outcomes.totals == {"success": 4, "failed": 0}
    late = record_of_samples(STORY[3:], period(NOW - 60, NOW, NOW, finest=10), "")
    assert late.outcomes.totals == {"success": 3, "failed": 0}


def test_changes_of_the_replicas_come_with_the_decisions_own_words() -> None:
    assert [(each.at, each.before, each.after, each.why) for each in story().changes] == [
        (NOW - 40, 0, 2, "From 0 to 2: 12 ready ask for 2."),
        (NOW - 10, 2, 0, "From 2 to 0: no work."),
    ]


def test_the_key_figures_are_those_of_the_whole_time() -> None:
    assert told(story()) == {
        "tasks ended": ("10", "10 runs"),
        "of these FAILED": ("1", "10.0% of them"),
        "wait, p95": ("10 s", "p50 5.5 s, p99 10 s"),
        "most ready at once": ("12", "at 07:59:20"),
        "oldest ready task": ("1 min 16 s", "at 07:59:20"),
        "replicas desired": ("0 to 2", "at most 4"),
        "not Ready": ("10 s", "in all"),
    }


def test_a_pool_that_ran_nothing_has_figures_without_numbers() -> None:
    figures = told(record_of_samples([sample(NOW - 5)], period(NOW - 10, NOW, NOW), ""))
    assert figures["tasks ended"] == ("0", "0 runs")
    assert figures["wait, p95"] == ("–", "no run began")
    assert "not Ready" not in figures


@pytest.mark.parametrize(
    ("share", "value"),
    [
        pytest.param(0.1, 0.5, id="half of the way through the first bucket"),
        pytest.param(0.5, 5.5, id="half of the way through the second"),
        pytest.param(0.95, 10.0, id="beyond the last bound, which then counts"),
    ],
)
def test_a_quantile_lies_on_a_straight_line_within_its_bucket(share: float, value: float) -> None:
    assert quantile(share, WAITS) == pytest.approx(value)


def test_no_observations_have_no_quantile() -> None:
    assert quantile(0.5, {"1.0": 0.0, "+Inf": 0.0}) is None
    assert quantile(0.5, {}) is None


# --- the file of samples ------------------------------------------------------------------------------------------------


def test_a_file_of_samples_is_read_as_it_was_written(tmp_path: Path) -> None:
    with SampleFile(tmp_path / "samples") as file:
        for each in STORY:
            file.add(each)
    assert read_file(tmp_path / "samples") == (STORY, [])


def test_a_file_that_grows_too_large_leaves_its_first_samples_beside_it_and_then_loses_them(tmp_path: Path) -> None:
    path = tmp_path / "samples"
    limit = 2 * max(len(sample_line(each)) for each in STORY)
    with SampleFile(path, limit) as file:
        for each in STORY:
            file.add(each)
    assert path.stat().st_size <= limit
    assert earlier(path).stat().st_size <= limit
    found, _ = read_file(path)
    assert found == STORY[-len(found) :]
    assert len(found) < len(STORY)


def test_a_line_torn_by_a_kill_costs_itself_alone(tmp_path: Path) -> None:
    path = tmp_path / "samples"
    path.write_bytes(sample_line(STORY[0]) + sample_line(STORY[1])[:40])
    _, left_out = read_file(path)
    assert [(each.line, each.why) for each in left_out] == [(2, "it is torn: the pool was writing it, or was killed")]
    with SampleFile(path) as file:
        file.add(STORY[2])
    found, left_out = read_file(path)
    assert found == [STORY[0], STORY[2]]
    assert [(each.line, each.why) for each in left_out] == [(2, "it is no JSON")]


def test_foreign_lines_are_left_out_and_told_on_the_page(tmp_path: Path) -> None:
    path = write(tmp_path / "samples", STORY)
    path.write_bytes(path.read_bytes() + b'{"event": "pool"}\n{"sample": 99}\nplain text\n')
    record = record_from_file(path, Wanted(), NOW)
    (note,) = record.notes
    assert re.match(r"3 lines of the file were left out\. Line 6: it is no sample of a pool: .*required field", note)
    assert note in report_page(record, NOW, "1").replace("&lt;", "<")


def test_samples_are_not_appended_to_a_file_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine\n")
    with pytest.raises(InvalidInput, match=r"notes holds something other than samples of a pool\. Name another file"):
        SampleFile(tmp_path / "notes")
    assert (tmp_path / "notes").read_text() == "mine\n"


# --- the page -----------------------------------------------------------------------------------------------------------


def test_the_page_loads_and_runs_nothing() -> None:
    page = report_page(story(), NOW, "1.2.3")
    assert not re.search(r"<script|<link|<img|<iframe|@import|url\(|\son\w+=|href|https?:", page)
    assert "default-src 'none'" in page
    assert "prefers-color-scheme: dark" in page


def test_the_page_says_what_it_is_about_and_when_it_was_made() -> None:
    page = report_page(story(), NOW, "1.2.3")
    for words in (
        "<h1>Pool crew</h1>",
        "<dd>2027-01-15 07:59:00Z to 2027-01-15 08:00:00Z, all times in UTC</dd>",
        "<dd>1 min in steps of 10s</dd>",
        "<dd>the story</dd>",
        "<dd>2027-01-15 08:00:00Z by thunderagent 1.2.3</dd>",
        '<td class="told">From 0 to 2: 12 ready ask for 2.</td>',
    ):
        assert words in page


def test_every_chart_has_its_title_its_text_and_its_figures_under_the_pointer() -> None:
    page = report_page(story(), NOW, "1")
    titles = [each.title for each in charts(story())]
    assert titles == [
        "Backlog",
        "Age of the oldest ready task",
        "Replicas",
        "Waits",
        "Outcomes",
        "Failures",
        "Why as many replicas",
        "Conditions",
    ]
    assert all(f'aria-label="{title}. ' in page for title in titles)
    assert "<title>until 07:59:20\nready: 12\nrunning: 3\nwaiting: 0\nexpired: 0</title>" in page


def test_each_drawing_is_well_formed_and_within_its_frame() -> None:
    drawings = re.findall(r"<svg.*?</svg>", report_page(story(), NOW, "1"), re.DOTALL)
    assert len(drawings) == 8
    for drawing in drawings:
        numbers = [
            (float(rect.get("x", "")), float(rect.get("y", "")), float(rect.get("height", "")))
            for rect in ElementTree.fromstring(drawing).iter("rect")
        ]
        assert all(0 <= x <= 1000 and -0.01 <= y <= 100 and y + height <= 100.01 for x, y, height in numbers)


def test_a_gap_in_what_is_known_is_a_gap_in_the_line() -> None:
    page = report_page(story(), NOW, "1")
    (ready,) = re.findall(r'<path class="line s1" d="([^"]*)"', page.split("</figure>")[0])
    assert ready.count("M") == 2


def test_whatever_a_label_holds_is_text_on_the_page() -> None:
    evil = '<script>alert("x")</script>\x1b[31m'
    bad = sample(
        NOW - 5,
        pool=evil,
        sentence=evil,
        desired=1,
        reason=evil,
        errors={evil: 3.0},
        tasks={evil: 2.0},
        conditions={"Ready": True},
    )
    samples = [sample(NOW - 15, pool=evil), bad]
    page = report_page(record_of_samples(samples, period(NOW - 20, NOW, NOW, finest=10), evil), NOW, evil)
    assert "<script" not in page
    assert "\x1b" not in page
    assert page.count("&lt;script&gt;") >= 6


@pytest.mark.parametrize(
    ("highest", "unit", "ticks"),
    [
        pytest.param(0, Unit.COUNT, [0, 1], id="nothing at all"),
        pytest.param(3, Unit.COUNT, [0, 1, 2, 3], id="whole numbers for things"),
        pytest.param(97, Unit.COUNT, [0, 50, 100], id="hundreds by halves"),
        pytest.param(0.3, Unit.SECONDS, [0, 0.1, 0.2, 0.3], id="tenths of a second"),
        pytest.param(200, Unit.SECONDS, [0, 60, 120, 180, 240], id="minutes"),
    ],
)
def test_an_axis_has_its_ticks_at_numbers_that_people_count_in(highest: float, unit: Unit, ticks: list[float]) -> None:
    assert value_ticks(highest, unit) == pytest.approx(ticks)


def test_the_axis_of_time_has_round_moments() -> None:
    assert time_ticks(period(NOW - 3600 + 7, NOW + 7, NOW + 7)) == [NOW - 3000 + 600 * number for number in range(6)]


# --- the command --------------------------------------------------------------------------------------------------------


def test_a_page_is_written_from_samples_and_its_path_is_told(tmp_path: Path) -> None:
    path, page = write(tmp_path / "samples", STORY), tmp_path / "page.html"
    result = World().run("report", "--samples", str(path), "--out", str(page))
    assert (result.exit_code, result.stdout) == (0, f"{page}\n")
    assert "<h1>Pool crew</h1>" in page.read_text()


def test_a_page_can_go_to_stdout(tmp_path: Path) -> None:
    result = World().run("report", "--samples", str(write(tmp_path / "samples", STORY)), "--out", "-")
    assert result.stdout.startswith("<!DOCTYPE html>\n<html")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param([], "either --prometheus URL or --samples FILE", id="no source"),
        pytest.param(["--prometheus", "h:1", "--samples", "x"], "either --prometheus URL or --samples", id="two sources"),
        pytest.param(["--samples", "x", "--from", "5", "--last", "1h"], "Leave one of them out", id="two beginnings"),
        pytest.param(["--prometheus", "ftp://h"], "is not the URL of a Prometheus", id="a URL of something else"),
        pytest.param(["--prometheus", "h:1", "--to", "5", "--from", "9"], "before it begins", id="a range that ends first"),
        pytest.param(["--prometheus", "h:1", "--last", "1s"], "give one of at least 5s", id="a range of a second"),
        pytest.param(["--prometheus", "h:1", "--from", str(NOW + 9), "--to", str(NOW + 99)], "still to come", id="a future"),
        pytest.param(["--samples", "x", "--from", "2026-01-01"], "has no time zone", id="a time without a zone"),
    ],
)
def test_wrong_usage_is_told_with_what_to_do(arguments: list[str], words: str) -> None:
    result = World().run("report", *arguments)
    assert result.exit_code == 2 or "x cannot be read" in result.stderr
    assert words in result.stderr


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(None, "cannot be read: No such file", id="no file"),
        pytest.param(b"", "holds no samples of a pool. It is empty", id="an empty file"),
        pytest.param(b"hello\n", "holds no samples of a pool. Line 1: it is no JSON", id="a foreign file"),
        pytest.param(b'{"sample":', "Line 1: it is torn", id="only a torn line"),
    ],
)
def test_a_file_without_samples_is_told_with_what_to_do(tmp_path: Path, content: bytes | None, words: str) -> None:
    if content is not None:
        (tmp_path / "samples").write_bytes(content)
    result = World().run("report", "--samples", str(tmp_path / "samples"), "--out", str(tmp_path / "page"))
    assert result.exit_code == 1
    assert words in result.stderr
    assert "Name a file that `pool run --samples FILE` has written." in result.stderr
    assert not (tmp_path / "page").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["--pool", "other"], "There are no samples of the pool other, only of crew, night.", id="an unknown pool"),
        pytest.param([], "The samples are of several pools: crew, night. Choose one with --pool.", id="several pools"),
        pytest.param(
            ["--pool", "crew", "--from", "1000", "--to", "2000"],
            "There are samples from 2027-01-15 07:59:10Z to 2027-01-15 07:59:50Z, and none from 1970-01-01",
            id="a time without samples",
        ),
    ],
)
def test_samples_of_something_else_say_what_there_is(tmp_path: Path, arguments: list[str], words: str) -> None:
    path = write(tmp_path / "samples", [*STORY, sample(NOW - 5, pool="night")])
    result = World().run("report", "--samples", str(path), *arguments, "--out", str(tmp_path / "page"))
    assert result.exit_code == 1
    assert words in result.stderr


# --- from a Prometheus --------------------------------------------------------------------------------------------------


class Answers:
    """What a Prometheus answers: series by the beginning of a metric's name, for one that is there all the time."""

    def __init__(self, gauges: Mapping[str, Any], status: int = 200, body: bytes | None = None) -> None:
        self.gauges = gauges
        self.status = status
        self.body = body
        self.asked: list[Mapping[str, str]] = []
        self.authorization: str | None = None

    def to(self, path: str, form: Mapping[str, str]) -> bytes:
        self.asked.append(form)
        if self.body is not None:
            return self.body
        series = [each for metric, found in self.gauges.items() if metric in form["query"] for each in found]
        if path.endswith("/query_range"):
            start, end, step = (float(form[name]) for name in ("start", "end", "step"))
            times = [start + step * number for number in range(round((end - start) / step) + 1)]
            result = [{"metric": labels, "values": [[at, f"{value}"] for at in times]} for labels, value in series]
            return self._data("matrix", result)
        if form["query"].endswith("s]"):
            at = float(form["time"])
            return self._data("matrix", [{"metric": each, "values": [[at - 30, "3"], [at, "3"]]} for each, _ in series])
        factor = float(re.findall(r"\[(\d+)s\]", form["query"])[-1]) if "increase" in form["query"] else 1.0
        result = [{"metric": labels, "value": [0, f"{value * factor}"]} for labels, value in series]
        return self._data("vector", result)

    @staticmethod
    def _data(kind: str, result: list[dict[str, Any]]) -> bytes:
        return json.dumps({"status": "success", "data": {"resultType": kind, "result": result}}).encode()


@contextmanager
def answering(answers: Answers) -> Iterator[str]:
    """Its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            answers.authorization = self.headers.get("Authorization")
            body = answers.to(self.path, {name: values[0] for name, values in form.items()})
            self.send_response(answers.status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


REPORTS = {"namespace": "team", "pool": "reports"}
FLEET: Mapping[str, Any] = {
    "pool_desired_replicas": [(REPORTS, 3)],
    "pool_ready_tasks": [(REPORTS, 7)],
    "pool_condition": [({**REPORTS, "type": "Ready"}, 1)],
    "tasks_total": [({**REPORTS, "outcome": "success"}, 0.5), ({**REPORTS, "outcome": "failed"}, 0.25)],
    "task_wait_seconds_bucket": [({**REPORTS, "le": "1.0"}, 0.5), ({**REPORTS, "le": "+Inf"}, 0.5)],
}
"""A pool that ends half a task a second well, and a quarter badly; every start within a second."""


def ask(url: str, *arguments: str, out: str = "-") -> Any:
    return World().run("report", "--prometheus", url, *arguments, "--out", out)


def test_a_page_from_a_prometheus_has_its_figures() -> None:
    with answering(Answers(FLEET)) as url:
        page = ask(url, "--last", "10m").stdout
    assert "<h1>Pool team/reports</h1>" in page
    assert f"<dd>Prometheus at {url}</dd>" in page
    tiles = re.findall(r'<span class="label">([^<]*)</span><span class="figure">([^<]*)</span>', page)
    assert dict(tiles) == {
        "tasks ended": "450",
        "of these FAILED": "150",
        "wait, p95": "0.9 s",
        "most ready at once": "7",
        "oldest ready task": "–",
        "replicas desired": "3 to 3",
    }
    assert "<dd>10 min in steps of 1m</dd>" in page  # two scrapes, which are 30 s apart
    assert "success: 30\n" in page  # half a task a second


def test_a_prometheus_is_asked_for_one_pool_with_its_name_quoted() -> None:
    named = {"namespace": "team", "pool": 'a"} or vector(1) #'}
    answers = Answers({"pool_desired_replicas": [(named, 1)]})
    with answering(answers) as url:
        assert ask(url).exit_code == 0
    assert 'pool="a\\"} or vector(1) #"' in answers.asked[1]["query"]


def test_the_user_and_the_password_of_a_url_are_sent_and_not_shown() -> None:
    answers = Answers(FLEET)
    with answering(answers) as url:
        result = ask(url.replace("http://", "http://me:s%20ecret@"))
    assert answers.authorization == "Basic bWU6cyBlY3JldA=="
    assert "ecret" not in result.output


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        pytest.param(Answers({}), "This Prometheus has no metrics of a pool between 2027-01-15 07:00:00Z", id="no metrics"),
        pytest.param(Answers({}, body=b"<html>Grafana</html>"), "but not as a Prometheus does", id="a page"),
        pytest.param(Answers({}, 404, b"not found"), "answers (HTTP 404), but not as a Prometheus does", id="another path"),
        pytest.param(Answers({}, 401, b"who?"), "wants to know who asks (HTTP 401)", id="a closed door"),
        pytest.param(
            Answers({}, 422, b'{"status":"error","errorType":"execution","error":"query timed out"}'),
            "refuses the query: query timed out.",
            id="a query that was refused",
        ),
        pytest.param(
            Answers({"pool_desired_replicas": [(REPORTS, 1), ({"namespace": "", "pool": "crew"}, 1)]}),
            "Several pools fit; this Prometheus knows crew, team/reports. Choose one with --pool and --namespace.",
            id="several pools",
        ),
    ],
)
def test_a_prometheus_that_cannot_tell_says_so_with_what_to_do(answers: Answers, words: str, tmp_path: Path) -> None:
    with answering(answers) as url:
        result = ask(url, out=str(tmp_path / "page"))
    assert result.exit_code == 1
    assert words in result.stderr
    assert not (tmp_path / "page").exists()


def test_a_pool_that_was_not_there_is_told_with_those_that_were() -> None:
    with answering(Answers(FLEET)) as url:
        result = ask(url, "--pool", "mail")
    assert "No such pool was there; this Prometheus knows team/reports." in result.stderr


def test_a_prometheus_that_is_not_there_is_told_with_the_way_to_it() -> None:
    with answering(Answers({})) as url:
        pass
    result = ask(url)
    assert result.exit_code == 1
    assert re.search(r"cannot be reached: .*Connection refused.*kubectl port-forward", result.stderr)


def test_an_address_without_a_scheme_is_one_of_http() -> None:
    assert address("prometheus:9090/path/").url == "http://prometheus:9090/path"
