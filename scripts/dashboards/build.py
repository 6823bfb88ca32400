"""From frozen values to Grafana's JSON, by Grafana's own types of it."""

from __future__ import annotations

import string
from collections.abc import Iterator

from grafana_foundation_sdk.builders import common as made_common
from grafana_foundation_sdk.builders import dashboard as made
from grafana_foundation_sdk.builders import prometheus, stat, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common, dashboard

from scripts.dashboards.panel import Board, Panel, Row

WIDTH = 24
"""Columns of Grafana's grid."""

GRAPH_WIDTH, GRAPH_HEIGHT = 8, 8
STAT_WIDTH, STAT_HEIGHT = 4, 4

SOURCE = dashboard.DataSourceRef(type_val="prometheus", uid="${datasource}")

PRICES = {"price_read": ("US$ a million read units", "0.125"), "price_write": ("US$ a million write units", "0.625")}
"""On-demand prices of us-east-1; a person types those of another region."""

PanelBuilder = timeseries.Panel | stat.Panel


def dashboard_json(board: Board) -> str:
    """The dashboard as a file that Grafana's sidecar can load."""
    builder = (
        made.Dashboard(board.title)
        .uid(board.uid)
        .description(board.description)
        .tags(list(board.tags))
        .refresh("30s")
        .time("now-3h", "now")
        .timezone("browser")
        .tooltip(dashboard.DashboardCursorSync.CROSSHAIR)
        .link(_link_to_others())
    )
    for variable in _variables(board):
        builder.with_variable(variable)
    for panel in _placed(board.rows):
        builder.with_row(panel) if isinstance(panel, made.Row) else builder.with_panel(panel)
    return JSONEncoder(sort_keys=True, indent=2).encode(builder.build()) + "\n"


def _link_to_others() -> made.DashboardLink:
    kind = dashboard.DashboardLinkType.DASHBOARDS
    return made.DashboardLink("ThunderAgent").type(kind).tags(["thunderagent"]).keep_time(True).include_vars(True)


def _variables(board: Board) -> Iterator[made.DatasourceVariable | made.QueryVariable | made.TextBoxVariable]:
    yield made.DatasourceVariable("datasource").label("Data source").type("prometheus")
    yield _query_variable("namespace", "Namespace", "label_values(thunderagent_pool_max_replicas, namespace)")
    yield _query_variable("pool", "Pool", 'label_values(thunderagent_pool_max_replicas{namespace=~"$namespace"}, pool)')
    if board.prices:
        for name, (label, default) in PRICES.items():
            current = dashboard.VariableOption(selected=True, text=default, value=default)
            yield made.TextBoxVariable(name).label(label).default_value(default).current(current)


def _query_variable(name: str, label: str, query: str) -> made.QueryVariable:
    return (
        made.QueryVariable(name)
        .label(label)
        .query(query)
        .datasource(SOURCE)
        .multi(True)
        .include_all(True)
        .all_value(".*")
        .current(dashboard.VariableOption(selected=True, text="All", value="$__all"))
        .refresh(dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(dashboard.VariableSort.ALPHABETICAL_ASC)
    )


def _placed(rows: tuple[Row, ...]) -> Iterator[made.Row | PanelBuilder]:
    """Rows and panels from left to right, each with a number and a place of its own."""
    top = number = 0
    for row in rows:
        yield made.Row(row.title).id(number := number + 1).grid_pos(dashboard.GridPos(h=1, w=WIDTH, x=0, y=top))
        top, left, high = top + 1, 0, 0
        for panel in row.panels:
            width, height = (STAT_WIDTH, STAT_HEIGHT) if panel.stat else (GRAPH_WIDTH, GRAPH_HEIGHT)
            if left + width > WIDTH or (high and height != high):
                top, left, high = top + high, 0, 0
            place = dashboard.GridPos(h=height, w=width, x=left, y=top)
            yield _panel(panel).id(number := number + 1).grid_pos(place)
            left, high = left + width, height
        top += high


def _panel(panel: Panel) -> PanelBuilder:
    builder = _stat(panel) if panel.stat else _graph(panel)
    builder.title(panel.title).description(panel.description).unit(panel.unit).datasource(SOURCE)
    for name, (legend, expr) in zip(string.ascii_uppercase, panel.queries.items(), strict=False):
        query = prometheus.Dataquery().expr(expr).legend_format(legend).ref_id(name).datasource(SOURCE)
        builder.with_target(query.instant() if panel.stat else query.range())
    return builder


def _stat(panel: Panel) -> stat.Panel:
    builder = stat.Panel().reduce_options(made_common.ReduceDataOptions().calcs(["lastNotNull"]))
    steps = [dashboard.Threshold(color="green")]
    if panel.good_below is not None:
        steps.append(dashboard.Threshold(value=panel.good_below, color="red"))
    return builder.thresholds(made.ThresholdsConfig().mode(dashboard.ThresholdsMode.ABSOLUTE).steps(steps))


def _graph(panel: Panel) -> timeseries.Panel:
    legend = (
        made_common.VizLegendOptions()
        .display_mode(common.LegendDisplayMode.LIST)
        .placement(common.LegendPlacement.BOTTOM)
        .show_legend(True)
    )
    tooltip = made_common.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI)
    builder = timeseries.Panel().legend(legend).tooltip(tooltip).fill_opacity(10).line_width(1)
    if not panel.signed:
        builder.min(0)
    if panel.stacked:
        builder.stacking(made_common.StackingConfig().mode(common.StackingMode.NORMAL)).fill_opacity(40)
    return builder
