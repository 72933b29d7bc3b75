"""What all dashboards share: variables, the kinds of panels, colours.

Every panel says what it shows and in which unit; a helper that takes neither does not exist.
"""

from collections.abc import Sequence
from typing import Any

from grafana_foundation_sdk.builders import (
    bargauge,
    common,
    dashboard,
    heatmap,
    prometheus,
    stat,
    statetimeline,
    timeseries,
)
from grafana_foundation_sdk.models import common as looks
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode, HeatmapColorScale
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from deploy.installations import LABELS, chosen

TAG = "ordercast"
PROMETHEUS = model.DataSourceRef(type_val="prometheus", uid="${datasource}")

FIRING = 'ALERTS{alertname=~"Ordercast.*", alertstate="firing"}'
#: What all series are chosen by: several installations may be in one Prometheus.
INSTALLATION = ", ".join(f'{label}=~"${label}"' for label in LABELS)
#: What series are chosen by beside that, for metrics of domains, of groups, and of processes.
DOMAIN = 'domain=~"$domain"'
GROUP = f'{DOMAIN}, group=~"$group"'
NODE = 'instance=~"$node"'

SECONDS, BYTES, SHARE, COUNT = "s", "bytes", "percentunit", "short"
BYTES_PER_SECOND = "Bps"
MESSAGES, ENVELOPES, RECORDS, REQUESTS = "si:msg/s", "si:env/s", "si:rec/s", "reqps"
PER_SECOND = "cps"

GREEN, ORANGE, RED, BLUE = "green", "orange", "red", "blue"
#: Upper bounds of what is good, and of what is not bad yet.
Limits = tuple[float, float]

WIDTH = 24
TALL, LOW = 8, 4

# ------------------------------------------------------------------------------------------------------ queries


def query(expression: str, legend: str = "", *, exemplars: bool = False, ref: str = "A") -> prometheus.Dataquery:
    """Over the time range; exemplars where a histogram has them: the dots that lead to traces."""
    return (
        prometheus.Dataquery()
        .datasource(PROMETHEUS)
        .expr(chosen(expression, INSTALLATION))
        .legend_format(legend or "__auto")
        .range()
        .exemplar(exemplars)
        .ref_id(ref)
    )


def latest(expression: str, legend: str = "") -> prometheus.Dataquery:
    """Only how it is now."""
    found = prometheus.Dataquery().datasource(PROMETHEUS).expr(chosen(expression, INSTALLATION))
    return found.legend_format(legend or "__auto").instant().ref_id("A")


def quantile(share: float, histogram: str, chosen: str, by: str = "") -> str:
    labels = f"le, {by}" if by else "le"
    return (
        f"histogram_quantile({share}, sum by ({labels}) (rate({histogram}_bucket{{{chosen}}}[$__rate_interval])))"
    )


def quantiles(histogram: str, chosen: str, *, exemplars: bool) -> list[prometheus.Dataquery]:
    """The middle, and the slow ones."""
    wanted = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
    return [
        query(quantile(share, histogram, chosen), name, exemplars=exemplars, ref=ref)
        for ref, (name, share) in zip("ABC", wanted.items(), strict=True)
    ]


def rate(metric: str, chosen: str, by: str = "") -> str:
    grouped = f" by ({by})" if by else ""
    return f"sum{grouped} (rate({metric}{{{chosen}}}[$__rate_interval]))"


def or_none(expression: str, label: str = "") -> str:
    """A counter of what has never happened has no series; that is no reason for an empty panel.

    Where series have labels, the zero gets a name in one of them, and is there only until there is something else.
    """
    zero = f'label_replace(vector(0), "{label}", "none so far", "", "")' if label else "vector(0)"
    return f"{expression} or on () {zero}"


# ------------------------------------------------------------------------------------------------------- panels


def thresholds(limits: Limits | None, *, low_is_bad: bool = False) -> dashboard.ThresholdsConfig:
    """Green, then orange, then red; without limits, one colour."""
    steps = [model.Threshold(None, BLUE if limits is None else RED if low_is_bad else GREEN)]
    if limits is not None:
        steps.append(model.Threshold(limits[0], ORANGE))
        steps.append(model.Threshold(limits[1], GREEN if low_is_bad else RED))
    return dashboard.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(steps)


def to_dashboard(uid: str, title: str) -> dashboard.DashboardLink:
    """With the same time and variables."""
    link = dashboard.DashboardLink(title).type(model.DashboardLinkType.LINK)
    return link.url(f"/d/{uid}?${{__url_time_range}}&${{__all_variables}}")


def number(
    title: str,
    description: str,
    unit: str,
    target: prometheus.Dataquery,
    limits: Limits | None = None,
    *,
    low_is_bad: bool = False,
    width: int = 4,
    missing: str = "no data",
    link: dashboard.DashboardLink | None = None,
) -> stat.Panel:
    """One large number on its colour."""
    panel = (
        stat.Panel()
        .title(title)
        .description(description)
        .unit(unit)
        .datasource(PROMETHEUS)
        .with_target(target)
        .thresholds(thresholds(limits, low_is_bad=low_is_bad))
        .color_scheme(dashboard.FieldColor().mode(model.FieldColorModeId.THRESHOLDS))
        .color_mode(looks.BigValueColorMode.BACKGROUND)
        .graph_mode(looks.BigValueGraphMode.NONE)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .no_value(missing)
        .span(width)
        .height(LOW)
    )
    return panel.links([link]) if link is not None else panel


def lines(
    title: str,
    description: str,
    unit: str,
    targets: Sequence[prometheus.Dataquery],
    limits: Limits | None = None,
    *,
    low_is_bad: bool = False,
    width: int = 12,
    stacked: bool = False,
) -> timeseries.Panel:
    """Series over time; limits are lines across."""
    panel = (
        timeseries.Panel()
        .title(title)
        .description(description)
        .unit(unit)
        .datasource(PROMETHEUS)
        .targets(list(targets))
        .min(0)
        .fill_opacity(40 if stacked else 8)
        .show_points(looks.VisibilityMode.NEVER)
        .legend(
            common.VizLegendOptions()
            .show_legend(True)
            .display_mode(looks.LegendDisplayMode.LIST)
            .placement(looks.LegendPlacement.BOTTOM)
        )
        .tooltip(common.VizTooltipOptions().mode(looks.TooltipDisplayMode.MULTI).sort(looks.SortOrder.DESCENDING))
        .span(width)
        .height(TALL)
    )
    if stacked:
        panel = panel.stacking(common.StackingConfig().mode(looks.StackingMode.NORMAL))
    if limits is not None:
        style = common.GraphThresholdsStyleConfig().mode(looks.GraphThresholdsStyleMode.DASHED)
        panel = panel.thresholds(thresholds(limits, low_is_bad=low_is_bad)).thresholds_style(style)
    return panel


def heat(
    title: str, description: str, unit: str, histogram: str, chosen: str, *, exemplars: bool
) -> heatmap.Panel:
    """How many values were in which bucket, over time."""
    expression = f"sum by (le) (increase({histogram}_bucket{{{chosen}}}[$__rate_interval]))"
    colours = heatmap.HeatmapColorOptions().mode(HeatmapColorMode.SCHEME).scheme("Oranges").steps(64)
    return (
        heatmap.Panel()
        .title(title)
        .description(description)
        .unit(unit)
        .datasource(PROMETHEUS)
        .with_target(query(expression, "{{le}}", exemplars=exemplars).format(PromQueryFormat.HEATMAP))
        .calculate(False)
        .color(colours.scale(HeatmapColorScale.EXPONENTIAL).exponent(0.5).fill("dark-orange").reverse(False))
        .y_axis(heatmap.YAxisConfig().unit(unit).axis_placement(looks.AxisPlacement.LEFT))
        .cell_values(heatmap.CellValues().unit(COUNT))
        .exemplars_color("rgba(255,0,255,0.7)")
        .show_legend()
        .show_color_scale(True)
        .mode(looks.TooltipDisplayMode.SINGLE)
        .span(12)
        .height(TALL)
    )


def ranking(
    title: str, description: str, unit: str, target: prometheus.Dataquery, *, width: int = 12
) -> bargauge.Panel:
    """How it is now, the largest first: the query sorts."""
    return (
        bargauge.Panel()
        .title(title)
        .description(description)
        .unit(unit)
        .datasource(PROMETHEUS)
        .with_target(target)
        .min(0)
        .display_mode(looks.BarGaugeDisplayMode.GRADIENT)
        .orientation(looks.VizOrientation.HORIZONTAL)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .color_scheme(dashboard.FieldColor().mode(model.FieldColorModeId.CONTINUOUS_YL_RD))
        .span(width)
        .height(TALL)
    )


def states(
    title: str,
    description: str,
    target: prometheus.Dataquery,
    words: dict[int, tuple[str, str]],
    *,
    width: int = 12,
) -> statetimeline.Panel:
    """Which of a few states, over time: each value with its word and its colour."""
    results = {
        str(value): model.ValueMappingResult(text=text, color=color) for value, (text, color) in words.items()
    }
    return (
        statetimeline.Panel()
        .title(title)
        .description(description)
        .unit(COUNT)
        .datasource(PROMETHEUS)
        .with_target(target)
        .mappings([model.ValueMap(results)])
        .show_value(looks.VisibilityMode.NEVER)
        .merge_values(True)
        .fill_opacity(80)
        .span(width)
        .height(TALL)
    )


# --------------------------------------------------------------------------------------------------- dashboards


def values(series: str, label: str) -> str:
    """Those that a label has in the installations that are chosen."""
    return f"label_values({chosen(series, INSTALLATION)}, {label})"


def choice(name: str, text: str, asked: str) -> dashboard.QueryVariable:
    """A variable of which several values can be chosen, or all."""
    return (
        dashboard.QueryVariable(name)
        .label(text)
        .datasource(PROMETHEUS)
        .query({"query": asked, "refId": name})
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(model.VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(".*")
        .current(model.VariableOption(selected=True, text="All", value="$__all"))
    )


def board(uid: str, title: str, description: str) -> dashboard.Dashboard:
    """An empty one, with what all have."""
    firing = dashboard.AnnotationQuery().name("Alerts").datasource(PROMETHEUS).enable(True).icon_color(RED)
    others = dashboard.DashboardLink("Ordercast").type(model.DashboardLinkType.DASHBOARDS).tags([TAG])
    return (
        dashboard.Dashboard(f"Ordercast: {title}")
        .uid(uid)
        .description(description)
        .tags([TAG])
        .editable()
        .tooltip(model.DashboardCursorSync.CROSSHAIR)
        .time("now-1h", "now")
        .refresh("10s")
        .timezone("browser")
        .with_variable(dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus"))
        .with_variable(choice("cluster", "Cluster", "label_values(ordercast_info, cluster)"))
        .with_variable(choice("namespace", "Namespace", "label_values(ordercast_info, namespace)"))
        .with_variable(choice("release", "Release", "label_values(ordercast_info, release)"))
        .with_variable(choice("domain", "Domain", values("ordercast_group_available", "domain")))
        .with_variable(choice("group", "Group", values(f"ordercast_group_available{{{DOMAIN}}}", "group")))
        .with_variable(choice("node", "Node", values("ordercast_host_waiting", "instance")))
        .annotation(firing.expr(chosen(FIRING, INSTALLATION)))
        .link(others.as_dropdown(False).include_vars(True).keep_time(True))
    )


def row(built: dashboard.Dashboard, title: str, *panels: Any) -> dashboard.Dashboard:
    built = built.with_row(dashboard.Row(title))
    for panel in panels:
        built = built.with_panel(panel)
    return built
