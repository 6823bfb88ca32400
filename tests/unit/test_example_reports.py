"""The report example: CSV files of all sorts in, the right figures and readable errors out."""

from __future__ import annotations

import csv
import sqlite3
import statistics
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed; it comes with the extra 'demo'")
pytest.importorskip("jinja2", reason="jinja2 is not installed; it comes with the extra 'demo'")

from examples.reports import samples, tasks
from examples.reports.analyse import NothingToReport, Report, Request, analyse
from examples.reports.columns import Kind, infer_columns
from examples.reports.csvfile import BadCsv, read_rows
from examples.reports.database import open_database
from examples.reports.files import unique_slugs, write_text
from examples.reports.grouping import By, find_grouping
from examples.reports.index import first_open, index_html, make_index, pause_seconds
from examples.reports.load import Survey, load, survey
from examples.reports.names import IMPORT, REPORT
from examples.reports.page import report_page
from examples.reports.plan import Plan, make_plan
from thunderagent import Done, Fail, NewTask, RunningTask, Snooze, Status, Task, TaskQueue
from thunderagent.agent.handler import load_handler
from thunderagent.errors import LeaseLost
from thunderagent.pool.file import load_pool
from thunderagent.store.memory import MemoryStore
from thunderagent.task import TaskError

MADE_AT = datetime(2025, 12, 1, 14, 3, tzinfo=UTC)

needs_vega = pytest.mark.skipif(
    find_spec("vega_datasets") is None, reason="vega_datasets is not installed; it comes with the extra 'demo'"
)


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def cells(path: Path) -> list[list[str]]:
    return [row.cells for row in read_rows(path)]


def loaded(path: Path, directory: Path) -> Path:
    database = directory / f"{path.stem}.sqlite"
    load(path, database, survey(path))
    return database


def report_on(path: Path, directory: Path, by: By, column: str, key: str) -> Report:
    with open_database(loaded(path, directory)) as data:
        return analyse(data, Request(path.name, by, column, key))


def vega(name: str) -> Path:
    return next(path for path in samples.sample_files() if path.stem == name)


def vega_rows(name: str) -> list[dict[str, str]]:
    with vega(name).open(newline="") as text:
        return list(csv.DictReader(text))


# --- reading a file -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"", "it.csv is empty", id="an empty file"),
        pytest.param(b"\n\n", "it.csv is empty", id="blank lines and nothing else"),
        pytest.param(b"a,b\n", "it.csv has a header and no rows", id="a header and no rows"),
        pytest.param(b"a,b\n1,2\n3\n", "it.csv, line 3: 1 field, but the header has 2", id="a row that is too short"),
        pytest.param(b"a,b\n1,2,3\n", "it.csv, line 2: 3 fields, but the header has 2", id="a row that is too long"),
        pytest.param(b"a,b\n1,2\n\n\n3\n", "it.csv, line 5: ", id="blank lines are counted"),
        pytest.param(b'a,b\n"1\n2\n3",4\n5\n', "it.csv, line 5: ", id="lines inside quotation marks are counted"),
        pytest.param(b"a,b\n1,2\n3,\x004\n", "it.csv, line 3: byte 0x00 at character 3", id="a NUL byte"),
        pytest.param(b"a,b\n1,2\n3,\x81\n", "it.csv, line 3: byte 0x81 at character 3", id="a byte of no encoding"),
        pytest.param(b'a,b\n1,2\n"3,4\n5,6\n', "it.csv, line 3: ", id="a quotation mark that is never closed"),
        pytest.param(b'a,b\n"1"x,2\n', "it.csv, line 2: ", id="text after a closing quotation mark"),
        pytest.param(b"a,b\n1," + b"x" * 140_000 + b"\n", "it.csv, line 2: field larger", id="a huge field"),
        pytest.param(b",".join([b"c"] * 1001) + b"\n", "it.csv, line 1: 1001 columns", id="too many columns"),
        pytest.param("a,b\n1,2".encode("utf-16")[:-1], "it.csv, line ", id="UTF-16 that ends in mid-character"),
    ],
)
def test_a_file_that_is_no_table_is_refused_with_its_name_and_line(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(BadCsv) as caught:
        survey(write(tmp_path / "it.csv", content))
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("city,n\nZürich,1\n".encode(), id="UTF-8"),
        pytest.param("city,n\nZürich,1\n".encode("utf-8-sig"), id="UTF-8 with a byte order mark"),
        pytest.param("city,n\nZürich,1\n".encode("utf-16"), id="UTF-16"),
        pytest.param("city,n\nZürich,1\n".encode("cp1252"), id="Windows-1252"),
        pytest.param("city;n\r\nZürich;1\r\n".encode(), id="semicolons and Windows line ends"),
        pytest.param("city\tn\rZürich\t1".encode(), id="tabs, old Mac line ends and none at the end"),
        pytest.param('"city","n"\n\n"Zürich","1"\n\n'.encode(), id="quotation marks and blank lines"),
    ],
)
def test_spellings_of_the_same_table_give_the_same_rows(tmp_path: Path, content: bytes) -> None:
    assert cells(write(tmp_path / "it.csv", content)) == [["city", "n"], ["Zürich", "1"]]


def test_column_names_are_made_different_even_without_regard_to_case(tmp_path: Path) -> None:
    assert cells(write(tmp_path / "it.csv", "a,,A, a ,\n1,2,3,4,5\n"))[0] == ["a", "column 2", "A 2", "a 3", "column 5"]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        pytest.param(["1", "-2.5", ".5", "3e4", ""], Kind.NUMBER, id="numbers, one missing"),
        pytest.param(["1", "NA", "NaN", "null"], Kind.NUMBER, id="spellings of no value among numbers"),
        pytest.param(["00501", "10001"], Kind.TEXT, id="postcodes keep their zeros"),
        pytest.param(["1", "two"], Kind.TEXT, id="a number and a word"),
        pytest.param(["inf", "1"], Kind.TEXT, id="infinity is not a number to add up"),
        pytest.param(["9" * 400], Kind.TEXT, id="digits that would become infinity"),
        pytest.param(["1_000"], Kind.TEXT, id="a number as only Python spells it"),
        pytest.param(["2012/01/31", "2012/02/01"], Kind.TIME, id="days with slashes"),
        pytest.param(["Jan 1 2000", "Feb 1 2000"], Kind.TIME, id="days with names of months"),
        pytest.param(["2012-01-01", "01.02.2012"], Kind.TEXT, id="two formats in one column"),
        pytest.param(["03/14/2012", "04/03/2012"], Kind.TIME, id="month first, told by a day above 12"),
        pytest.param(["", ""], Kind.TEXT, id="no value at all"),
    ],
)
def test_the_kind_of_a_column_is_what_fits_all_of_its_values(values: list[str], kind: Kind) -> None:
    assert infer_columns(["it"], [[value] for value in values])[0].kind is kind


def test_times_with_an_offset_are_kept_in_utc() -> None:
    column = infer_columns(["at"], [["2020-07-01T00:30:00+02:00"], ["2020-07-01T00:30:00Z"]])[0]
    assert column.value("2020-07-01T00:30:00+02:00") == "2020-06-30 22:30:00"


# --- loading ------------------------------------------------------------------------------------------------------------


def rows_of(database: Path) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute("SELECT * FROM data").fetchall()


def test_loading_again_replaces_what_was_there(tmp_path: Path) -> None:
    path = write(tmp_path / "it.csv", "a,b\n1,x\n,\n2,\n")
    database = loaded(path, tmp_path)
    assert rows_of(database) == [(1.0, "x"), (2.0, None)]
    write(path, "a,b\n3,y\n")
    assert rows_of(loaded(path, tmp_path)) == [(3.0, "y")]


def test_a_load_that_fails_leaves_the_old_database_and_nothing_else(tmp_path: Path) -> None:
    path = write(tmp_path / "it.csv", "a,b\n1,x\n")
    database = loaded(path, tmp_path)
    found = survey(path)
    write(path, "a,b\n1,x\n2,y,z\n")
    with pytest.raises(BadCsv, match="line 3"):
        load(path, database, found)
    assert rows_of(database) == [(1.0, "x")]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["it.csv", "it.sqlite"]


def test_two_agents_may_load_the_same_file_at_once(tmp_path: Path) -> None:
    path = write(tmp_path / "it.csv", "a\n" + "1\n" * 12_000)
    database, found = tmp_path / "it.sqlite", survey(path)
    during: list[int] = []

    def second_agent(rows: int) -> None:
        if not during:
            during.append(load(path, database, found))

    assert load(path, database, found, on_rows=second_agent) == 12_000
    assert during == [12_000]
    assert len(rows_of(database)) == 12_000


def test_a_survey_goes_through_a_checkpoint_and_knows_when_the_file_was_changed(tmp_path: Path) -> None:
    path = write(tmp_path / "it.csv", "day,n\n2020-01-01,1\n")
    found = survey(path)
    assert Survey.from_record(found.to_record()) == found
    assert found.is_of(path)
    write(path, "day,n\n2020-01-01,17\n")
    assert not found.is_of(path)


# --- planning -----------------------------------------------------------------------------------------------------------


@needs_vega
@pytest.mark.parametrize(
    ("name", "by", "column", "reports"),
    [
        pytest.param("seattle-weather", By.MONTH, "date", 48, id="four years of days: one a month"),
        pytest.param("seattle-temps", By.MONTH, "date", 12, id="a year of hours: one a month"),
        pytest.param("sf-temps", By.MONTH, "date", 12, id="the time in the second column: one a month"),
        pytest.param("stocks", By.GROUP, "symbol", 5, id="several series in one file: one a series"),
        pytest.param("us-employment", By.COLUMN, "", 23, id="a row a month with many columns: one a column"),
        pytest.param("airports", By.GROUP, "state", 24, id="no time: one a state, of the largest"),
    ],
)
def test_each_sample_file_gets_the_reports_that_suit_it(name: str, by: By, column: str, reports: int) -> None:
    grouping = find_grouping(vega(name))
    assert (grouping.by, grouping.column, len(grouping.keys)) == (by, column, reports)


def test_a_century_of_days_is_cut_by_year_and_to_a_bounded_number(tmp_path: Path) -> None:
    days = "".join(f"{year}-{month:02}-{day:02},1\n" for year in range(1920, 2000) for month in (1, 7) for day in range(1, 8))
    grouping = find_grouping(write(tmp_path / "it.csv", "day,n\n" + days))
    assert (grouping.by, grouping.keys[0], grouping.keys[-1], grouping.left_out) == (By.YEAR, "1940", "1999", 20)


@pytest.fixture(scope="module")
def demo_plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    tmp_path = tmp_path_factory.mktemp("demo")
    return make_plan([*samples.sample_files(), samples.write_corrupt(tmp_path / "input")], tmp_path / "work")


@needs_vega
def test_the_demo_plan_can_be_enqueued_in_order(demo_plan: Plan) -> None:
    seen: set[str] = set()
    for new in demo_plan.tasks:
        assert new.task_id not in seen
        assert {new.depends_on} - {()} <= seen
        seen.add(new.task_id)
    assert 60 <= len(seen) <= 150


@needs_vega
def test_reports_depend_on_their_import_and_the_index_on_nothing_that_may_fail(demo_plan: Plan) -> None:
    *others, index = demo_plan.tasks
    assert not index.depends_on
    assert index.payload["tasks"] == [new.task_id for new in others]
    reports = [new for new in others if new.task_type == REPORT]
    imports = {new.task_id: new for new in others if new.task_type == IMPORT}
    assert len(reports) + len(imports) == len(others)
    assert all(imports[str(new.depends_on)].payload["database"] == new.payload["database"] for new in reports)


@needs_vega
def test_reports_of_the_corrupt_file_are_planned_so_that_they_can_fail_with_it(demo_plan: Plan) -> None:
    assert sum(new.depends_on == "reports/import/harbour-tides" for new in demo_plan.tasks) == 3


def test_planning_is_repeatable(tmp_path: Path) -> None:
    files = [samples.write_corrupt(tmp_path / "input")]
    assert make_plan(files, tmp_path) == make_plan(files, tmp_path)


def test_names_from_files_cannot_leave_the_work_directory_or_collide(tmp_path: Path) -> None:
    keys = ["../../etc/passwd", "A/B", "a-b", "..", "東京", "x" * 500]
    write(tmp_path / "it.csv", "key,n\n" + "".join(f"{key},{number}\n" for key in keys for number in range(6)))
    write(tmp_path / "IT.csv", "a,b\n1,2\n")
    work = tmp_path / "work"
    plan = make_plan(samples.input_files(tmp_path), work)
    pages = [Path(new.payload["page"]) for new in plan.tasks if "page" in new.payload]
    assert len(set(pages)) == len(pages) == 6 + 2 + 1
    assert all(page.resolve().is_relative_to(work / "pages") and len(page.name) < 100 for page in pages)
    assert len({new.task_id for new in plan.tasks}) == len(plan.tasks)


@pytest.mark.parametrize("content", [b"", b"\x89PNG\r\n\x1a\n\x00\x00", b"a,b\n"], ids=["empty", "a picture", "only a header"])
def test_a_file_that_cannot_be_read_still_gets_its_import_which_will_say_why(tmp_path: Path, content: bytes) -> None:
    plan = make_plan([write(tmp_path / "it.csv", content)], tmp_path)
    assert plan.tasks[0].task_type == IMPORT


def test_a_directory_without_csv_files_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(samples.NoInput, match=tmp_path.name):
        samples.input_files(tmp_path)


def test_slugs_differ_where_texts_do() -> None:
    assert unique_slugs(["A/B", "a-b", "a b", "Zürich", "!"], "other") == ["a-b", "a-b-2", "a-b-3", "zurich", "other"]


# --- figures, against values worked out from the CSV file in another way ---------------------------------------------------


@needs_vega
def test_figures_of_a_month_are_those_of_its_rows(tmp_path: Path) -> None:
    report = report_on(vega("seattle-weather"), tmp_path, By.MONTH, "date", "2012-01")
    everything = vega_rows("seattle-weather")
    for figures, whole in report.figures:
        values = [float(row[figures.column]) for row in everything if row["date"].startswith("2012/01")]
        assert figures.count == len(values) == 31
        assert (figures.low, figures.high) == (min(values), max(values))
        assert figures.mean == pytest.approx(statistics.fmean(values))
        assert figures.median == pytest.approx(statistics.median(values))
        assert whole == pytest.approx(statistics.fmean(float(row[figures.column]) for row in everything))
    assert [figures.column for figures, _ in report.figures] == ["precipitation", "temp_max", "temp_min", "wind"]
    assert report.figures[0][0].high_at == "2012-01-29 00:00:00"


@needs_vega
def test_a_month_of_hours_has_all_its_hours(tmp_path: Path) -> None:
    report = report_on(vega("sf-temps"), tmp_path, By.MONTH, "date", "2010-07")
    values = [float(row["temp"]) for row in vega_rows("sf-temps") if row["date"].startswith("2010/07")]
    assert report.rows == len(values) == 744
    assert report.figures[0][0].mean == pytest.approx(statistics.fmean(values))


@needs_vega
def test_a_share_tells_its_last_price_and_its_change(tmp_path: Path) -> None:
    report = report_on(vega("stocks"), tmp_path, By.GROUP, "symbol", "AAPL")
    prices = [float(row["price"]) for row in vega_rows("stocks") if row["symbol"] == "AAPL"]
    values = {tile.label: tile.value for tile in report.tiles}
    assert values["last price"] == f"{prices[-1]:.2f}" == "223.02"
    assert values["change"] == f"{100 * (prices[-1] / prices[0] - 1):+.1f} %"
    assert (values["highest"], values["lowest"]) == ("223.02", "7.07")


@needs_vega
def test_a_state_tells_its_rows_share_and_rank(tmp_path: Path) -> None:
    report = report_on(vega("airports"), tmp_path, By.GROUP, "state", "CA")
    states = [row["state"] for row in vega_rows("airports")]
    larger = sum(states.count(state) > states.count("CA") for state in set(states))
    assert report.rows == states.count("CA")
    assert [tile.value for tile in report.tiles][:3] == [
        f"{states.count('CA')}",
        f"{100 * states.count('CA') / len(states):.1f} %",
        f"{larger + 1}",
    ]


@needs_vega
def test_a_column_tells_its_course(tmp_path: Path) -> None:
    report = report_on(vega("us-employment"), tmp_path, By.COLUMN, "", "manufacturing")
    assert [(tile.label, tile.value, tile.note) for tile in report.tiles] == [
        ("last manufacturing", "12,360", "1 Dec 2015"),
        ("change", "−13.0 %", "since 1 Jan 2006"),
        ("highest", "14,226", "1 Apr 2006"),
        ("lowest", "11,453", "1 Feb 2010"),
    ]


def test_missing_values_are_counted_and_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "it.csv", "a,b\n1,x\nNA,x\n4,x\n")
    [(figures, _)] = report_on(path, tmp_path, By.COLUMN, "", "a").figures
    assert (figures.count, figures.missing, figures.mean, figures.median) == (2, 1, 2.5, 2.5)


@pytest.mark.parametrize(
    ("by", "column", "key", "message"),
    [
        pytest.param(By.GROUP, "kind", "z", "it.csv has no rows for z", id="a group that is not there"),
        pytest.param(By.COLUMN, "", "size", "it.csv has no column 'size'", id="a column that is not there"),
        pytest.param(By.MONTH, "kind", "2020-01", "not all values of column 'kind' are times", id="a month of no times"),
    ],
)
def test_a_report_on_what_is_not_there_says_so(tmp_path: Path, by: By, column: str, key: str, message: str) -> None:
    path = write(tmp_path / "it.csv", "kind,n\nx,1\ny,2\n")
    with pytest.raises(NothingToReport, match=message):
        report_on(path, tmp_path, by, column, key)


# --- pages --------------------------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """A page taken apart: fails for tags that do not match, and keeps what tests ask about."""

    VOID = frozenset({"meta", "br", "link", "img", "input", "hr"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> without a beginning"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style" and data.strip():
            self.texts.append(" ".join(data.split()))

    def attributes(self, name: str) -> list[str]:
        return [attributes[name] for _, attributes in self.tags if name in attributes]


def check_page(html: str) -> Page:
    page = Page(html)
    ids = page.attributes("id")
    assert len(set(ids)) == len(ids), "an id stands twice"
    references = page.attributes("aria-labelledby") + page.attributes("aria-describedby")
    assert set(references) <= set(ids)
    assert not [url for url in page.attributes("src") + page.attributes("href") if ":" in url], "something is loaded"
    assert "url(http" not in html
    assert "#0a0a" not in html, "a colour that stands for a role was not replaced"
    return page


@needs_vega
def test_a_page_holds_the_figures_and_a_chart_for_each_width(tmp_path: Path) -> None:
    page = check_page(report_page(report_on(vega("seattle-weather"), tmp_path, By.MONTH, "date", "2012-01"), MADE_AT))
    assert {"January 2012", "temp_max", "7.05", "−1.1", "12.8", "27.7", "29 Jan 2012"} <= set(page.texts)
    charts = [attributes for tag, attributes in page.tags if tag == "svg"]
    assert [chart["class"] for chart in charts] == ["chart wide", "chart narrow"]
    assert all(chart["role"] == "img" for chart in charts)
    assert any("var(--series-1)" in style for style in page.attributes("style"))


@needs_vega
def test_the_same_report_gives_the_same_page(tmp_path: Path) -> None:
    report = report_on(vega("stocks"), tmp_path, By.GROUP, "symbol", "IBM")
    assert report_page(report, MADE_AT) == report_page(report, MADE_AT)


HOSTILE = {
    "markup in all names.csv": 'na"me,$\\frac{1}{$,<script>alert(1)</script>\n'
    + "".join(f'"a ""q"" & {n % 3}",{n}.5,<b>x{n % 2}</b>\n' for n in range(40)),
    "one row.csv": "a,b\n1,2\n",
    "only names.csv": "name\n" + "".join(f"person {n}\n" for n in range(30)),
    "a constant.csv": "day,v\n" + "".join(f"2020-{n // 28 + 1:02}-{n % 28 + 1:02},5\n" for n in range(56)),
    "a column that ends.csv": "day,v\n"
    + "".join(f"2020-{n // 28 + 1:02}-{n % 28 + 1:02},{n if n < 28 else ''}\n" for n in range(56)),
    "the ends of the calendar.csv": "day,v\n"
    + "".join(f"{y}-{n + 1:02},{n}\n" for y in ("0001-01", "9999-12") for n in range(31)),
    "huge numbers.csv": "v,u\n" + "".join(f"{n}e98,{9**n}\n" for n in range(1, 30)),
    "no numbers at all.csv": "day,g,t\n" + "".join(f"2020-01-{n % 5 + 1:02},g{n % 3},t{n}\n" for n in range(60)),
    "every value missing.csv": "day,v\n" + "".join(f"2020-{n // 28 + 1:02}-{n % 28 + 1:02},NA\n" for n in range(56)),
    "below zero.csv": "s,day,v\n" + "".join(f"s{n % 2},2020-{n // 2 % 12 + 1:02}-01,{-n}\n" for n in range(24)),
    "the poles.csv": "name,lon,lat\n" + "".join(f"{'abc'[n % 3]},0,90\n" for n in range(60)),
    "both sides of the date line.csv": "k,lon,lat\n"
    + "".join(f"{'ab'[n % 2]},{179 - 358 * (n % 4 // 2)},{n}\n" for n in range(40)),
    "other scripts.csv": "城市,温度\n" + "".join(f"東京{n % 4},{n}\n" for n in range(60)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_every_planned_report_of_an_odd_file_becomes_a_sound_page(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, HOSTILE[name])
    grouping = find_grouping(path)
    assert grouping.keys
    for key in {grouping.keys[0], grouping.keys[-1]}:
        page = check_page(report_page(report_on(path, tmp_path, grouping.by, grouping.column, key), MADE_AT))
        assert not [tag for tag, _ in page.tags if tag in ("script", "b")], "markup from the file became markup of the page"


def test_a_page_is_replaced_whole_and_leaves_nothing_behind(tmp_path: Path) -> None:
    page = tmp_path / "pages" / "it.html"
    write_text(page, "first")
    write_text(page, "second")
    assert [(each.name, each.read_text()) for each in page.parent.iterdir()] == [("it.html", "second")]


# --- the index ----------------------------------------------------------------------------------------------------------


def ended(task_id: str, status: Status, task_type: str, payload: dict[str, Any], **more: Any) -> Task:
    return Task(task_id, status, payload, task_type, **more)


def test_a_look_goes_on_where_the_last_one_stopped_and_a_lost_task_holds_up_nobody() -> None:
    states = {"a": Status.SUCCESS, "b": Status.FAILED, "c": Status.RUNNING, "d": Status.DONE}
    asked: list[str] = []

    def ask(task_id: str) -> Task | None:
        asked.append(task_id)
        return Task(task_id, states[task_id]) if task_id in states else None

    ids = ["a", "lost", "b", "c", "d"]
    assert first_open(ids, 0, ask) == 3
    states["c"] = Status.FAILED
    assert first_open(ids, 3, ask) == 5
    assert asked == ["a", "lost", "b", "c", "c", "d"]


@pytest.mark.parametrize(("maybe_open", "seconds"), [(1, 1.0), (10, 1.0), (50, 5.0), (100_000, 10.0)])
def test_the_index_snoozes_longer_while_more_is_to_do(maybe_open: int, seconds: float) -> None:
    assert pause_seconds(maybe_open) == pytest.approx(seconds)


def test_the_index_links_what_was_made_and_tells_causes_before_consequences(tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    result = {"page": str(pages / "it" / "2012-01.html"), "title": "January 2012", "label": "mean <n>", "value": "7.05"}
    failed = TaskError("DependencyFailed", "run/import/bad FAILED")
    tasks_ended: dict[str, Task | None] = {
        "run/import/it": ended("run/import/it", Status.SUCCESS, IMPORT, {"csv": "/in/it.csv"}, result={"rows": 1461}),
        "run/it/1": ended("run/it/1", Status.SUCCESS, REPORT, {"source": "it.csv"}, result={**result, "spark": [1, 2.5]}),
        "run/bad/1": ended("run/bad/1", Status.FAILED, REPORT, {"key": "x", "dependsOn": ["run/import/bad"]}, error=failed),
        "run/import/bad": ended(
            "run/import/bad", Status.FAILED, IMPORT, {"csv": "/in/bad.csv"}, error=TaskError("Fail", "bad.csv, line 7: <oh>")
        ),
        "run/lost": None,
    }
    index = make_index(tasks_ended, pages / "index.html", MADE_AT, {"it.csv": 33})
    assert (index.made, index.failed) == (1, 3)
    assert [(each.name, each.reason, each.dependents) for each in index.failures] == [
        ("bad.csv", "bad.csv, line 7: <oh>", ("run/bad/1",)),
        ("run/lost", "It is not in the task table.", ()),
    ]
    page = check_page(index_html(index))
    assert "it/2012-01.html" in page.attributes("href")
    assert {"January 2012", "mean <n>", "7.05", "1 report on 1,461 rows; 33 more have no page of their own."} <= set(page.texts)
    assert len([tag for tag, _ in page.tags if tag == "polyline"]) == 1


def test_an_index_of_nothing_but_failures_is_a_page_too(tmp_path: Path) -> None:
    check_page(index_html(make_index({"gone": None}, tmp_path / "index.html", MADE_AT)))


# --- handlers and their pool ---------------------------------------------------------------------------------------------


class Link:
    """The agent's side of a running task: keeps what is saved; the lease is as it is told, the table is in memory."""

    def __init__(self, *, lost: bool = False) -> None:
        self.saved: list[Mapping[str, Any]] = []
        self._lost = lost
        self._queue = TaskQueue(store=MemoryStore(MADE_AT.timestamp))

    def save(self, progress: Mapping[str, Any], *, wait: bool) -> None:
        self.saved.append(progress)

    def lease_lost(self) -> bool:
        return self._lost

    def queue(self) -> TaskQueue:
        return self._queue


def running(new: NewTask, link: Link, progress: Mapping[str, Any] | None = None) -> RunningTask:
    payload = dict(new.payload)
    record = {"taskId": new.task_id, "payload": payload}
    task = Task(new.task_id, Status.RUNNING, payload, new.task_type, progress=progress, record=record)
    return RunningTask(task, link)


def handle(task: RunningTask) -> Any:
    """What an agent does with a claimed task: find the handler of its type and call it."""
    route = tasks.router.route(task.task_type)
    assert route is not None
    return route.handler(task)


def test_the_pool_file_is_valid_and_its_handler_takes_every_planned_task(tmp_path: Path) -> None:
    pool = load_pool(Path(tasks.__file__).with_name("pool.yaml"))
    router = load_handler(pool.spec.agent.handler or "")
    plan = make_plan([samples.write_corrupt(tmp_path)], tmp_path)
    assert (pool.spec.scaling.min_replicas, pool.spec.scaling.max_replicas) == (0, 4)
    assert all(router.route(new.task_type) for new in plan.tasks)


def test_the_corrupt_file_fails_without_a_retry_and_names_file_and_line(tmp_path: Path) -> None:
    plan = make_plan([samples.write_corrupt(tmp_path)], tmp_path)
    with pytest.raises(Fail, match=rf"^{samples.CORRUPT_NAME}, line {samples.CORRUPT_LINE}: byte 0x"):
        handle(running(plan.tasks[0], Link()))
    assert not list(tmp_path.glob("data/*"))


def test_a_second_run_of_an_import_goes_on_from_the_survey_of_the_first(tmp_path: Path) -> None:
    path = write(tmp_path / "it.csv", "a,b\n1,2\n")
    new = make_plan([path], tmp_path).tasks[0]
    first, second, third = Link(), Link(), Link()
    result = handle(running(new, first))
    assert handle(running(new, second, progress=first.saved[0])) == result
    assert result["rows"] == 1
    assert not second.saved
    write(path, "a,b\n1,2\n3,4\n")
    assert handle(running(new, third, progress=first.saved[0]))["rows"] == 2
    assert third.saved


def test_a_file_with_more_columns_than_a_checkpoint_can_hold_is_imported_all_the_same(tmp_path: Path) -> None:
    names = ",".join(f"{'column' * 10} {number}" for number in range(400))
    new = make_plan([write(tmp_path / "it.csv", f"{names}\n{','.join('1' * 400)}\n")], tmp_path).tasks[0]
    full = "x" * 385_000  # an item has 400 KB
    new = replace(new, payload={**new.payload, "full": full})
    link = Link()
    assert handle(running(new, link))["columns"] == 400
    assert not link.saved


def test_an_import_whose_lease_is_lost_stops_and_changes_nothing(tmp_path: Path) -> None:
    new = make_plan([write(tmp_path / "it.csv", "a,b\n1,2\n")], tmp_path).tasks[0]
    with pytest.raises(LeaseLost):
        handle(running(new, Link(lost=True)))
    assert not list(tmp_path.glob("data/*"))


def test_a_report_task_writes_its_page_and_returns_what_the_index_shows(tmp_path: Path) -> None:
    days = "".join(f"2020-{n // 28 + 1:02}-{n % 28 + 1:02},{n}\n" for n in range(56))
    plan = make_plan([write(tmp_path / "it.csv", "day,n\n" + days)], tmp_path)
    loading, first, *_ = plan.tasks
    handle(running(loading, Link()))
    result = handle(running(first, Link()))
    assert {name: result[name] for name in ("title", "label", "value", "rows")} == {
        "title": "January 2020",
        "label": "mean n",
        "value": "13.5",
        "rows": 28,
    }
    assert "January 2020" in check_page(Path(result["page"]).read_text()).texts


def test_a_report_task_whose_rows_are_gone_fails_without_a_retry(tmp_path: Path) -> None:
    plan = make_plan([write(tmp_path / "it.csv", "a,b\n1,2\n")], tmp_path)
    handle(running(plan.tasks[0], Link()))
    with pytest.raises(Fail, match="no column 'gone'"):
        handle(running(NewTask({**plan.tasks[1].payload, "key": "gone"}, task_type=REPORT), Link()))


def test_the_index_snoozes_while_tasks_are_open_and_is_made_when_all_have_ended(tmp_path: Path) -> None:
    plan = make_plan([write(tmp_path / "it.csv", "a,b\n1,2\n")], tmp_path)
    link = Link()
    queue = link.queue()
    queue.enqueue_many(plan.tasks)
    *others, index = plan.tasks
    queue.cancel(others[0].task_id, reason="tried")
    with pytest.raises(Snooze):
        handle(running(index, link))
    assert link.saved == [{"ended": 1}]
    assert not plan.index_page.exists()
    for other in others[1:]:
        queue.cancel(other.task_id)
    outcome = handle(running(index, link, progress=link.saved[0]))
    assert outcome == Done({"page": str(plan.index_page), "reports": 0, "failed": 3})
    assert "Cancelled: tried" in check_page(plan.index_page.read_text()).texts
