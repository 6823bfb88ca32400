"""The dashboard "ThunderAgent operator": whether pools are looked at, how long that takes, and what it costs."""

from __future__ import annotations

from scripts.dashboards.panel import CHOSEN, RATE, Board, Panel, Row, price_per_hour

_SCALERS = "and on (job, instance) thunderagent_scaling_dynamodb_calls_total"
"""Keeps of the processes' own series those of what scales pools."""

_HEALTH = Row(
    "Is it alive",
    (
        Panel(
            "Leaders",
            "Replicas of the operator that lead: exactly one. On one machine there is none.",
            "short",
            {"leaders": "sum(thunderagent_operator_leader)"},
            stat=True,
        ),
        Panel(
            "Pools",
            "Pools that the leader scales.",
            "short",
            {"pools": "sum(thunderagent_operator_pools)"},
            stat=True,
        ),
        Panel(
            "Versions",
            "How many processes run which version of ThunderAgent, agents included.",
            "short",
            {"{{version}}": "count by (version) (thunderagent_build_info)"},
            stat=True,
        ),
        Panel(
            "Oldest cycle",
            "How long ago the pool was last looked at that has been left alone for longest.",
            "s",
            {"age": f"max(time() - thunderagent_pool_last_cycle_timestamp_seconds{{{CHOSEN}}})"},
            stat=True,
            good_below=300,
        ),
        Panel(
            "Age of the last reading",
            "How long ago each pool's backlog was last read with success.",
            "s",
            {"{{namespace}} {{pool}}": f"time() - thunderagent_pool_last_read_timestamp_seconds{{{CHOSEN}}}"},
        ),
        Panel(
            "Conditions that are not as they should be",
            "1 for each pool that is not Ready, is Paused, or has its Fallback.",
            "short",
            {
                "{{namespace}} {{pool}} not Ready": f'thunderagent_pool_condition{{{CHOSEN}, type="Ready"}} == bool 0',
                "{{namespace}} {{pool}} {{type}}": f'thunderagent_pool_condition{{{CHOSEN}, type=~"Paused|Fallback"}}',
            },
        ),
    ),
)

_CYCLES = Row(
    "Cycles and decisions",
    (
        Panel(
            "Readings",
            "Readings of backlogs a second, by result: ok, or why they fail.",
            "cps",
            {"{{result}}": f"sum by (result) (rate(thunderagent_pool_reads_total{{{CHOSEN}}}[{RATE}]))"},
        ),
        Panel(
            "Counts that were cut",
            "1 for each pool whose counts are lower bounds at this moment: there is more than its replicas are for.",
            "short",
            {"{{namespace}} {{pool}}": f"thunderagent_pool_count_cut{{{CHOSEN}}}"},
        ),
        Panel(
            "Time of a cycle",
            "From the reading to the last write of a pool's cycle.",
            "s",
            {
                f"p{share}": f"histogram_quantile(0.{share}, sum by (le) "
                f"(rate(thunderagent_pool_cycle_seconds_bucket{{{CHOSEN}}}[{RATE}])))"
                for share in (50, 95, 99)
            },
        ),
        Panel(
            "Cycles",
            "Cycles that ended a second, by pool.",
            "cps",
            {
                "{{namespace}} {{pool}}": "sum by (namespace, pool) "
                f"(rate(thunderagent_pool_cycle_seconds_count{{{CHOSEN}}}[{RATE}]))"
            },
        ),
        Panel(
            "Decisions by reason",
            "Decisions a second, by the reason that settled them.",
            "cps",
            {"{{reason}}": f"sum by (reason) (rate(thunderagent_pool_decisions_total{{{CHOSEN}}}[{RATE}]))"},
            stacked=True,
        ),
        Panel(
            "Changes of the replicas",
            "Scale operations in the last 10 minutes, by direction and result.",
            "short",
            {
                "{{direction}} {{result}}": "sum by (direction, result) "
                f"(increase(thunderagent_pool_scalings_total{{{CHOSEN}}}[10m]))"
            },
        ),
        Panel(
            "Deletion costs written",
            "Pods a second on which the operator wrote what they are doing, so that idle ones go first.",
            "cps",
            {"pods": f"sum(rate(thunderagent_pool_marks_total{{{CHOSEN}}}[{RATE}]))"},
        ),
    ),
)

_COSTS = Row(
    "What it takes",
    (
        Panel(
            "Calls to DynamoDB",
            "Calls for readings of backlogs a second, by operation and result.",
            "reqps",
            {
                "{{operation}} {{result}}": "sum by (operation, result) "
                f"(rate(thunderagent_scaling_dynamodb_calls_total[{RATE}]))"
            },
        ),
        Panel(
            "Throttled attempts of such calls",
            "Attempts a second that were refused for throughput. Most are made again at once, and a reading is late, not lost.",
            "reqps",
            {
                "{{operation}}": f"sum by (operation) (rate(thunderagent_scaling_dynamodb_throttled_attempts_total[{RATE}]))",
            },
        ),
        Panel(
            "Latency of such a call, p99",
            "Its retries inside the client included.",
            "s",
            {
                "{{operation}}": "histogram_quantile(0.99, sum by (operation, le) "
                f"(rate(thunderagent_scaling_dynamodb_call_seconds_bucket[{RATE}])))"
            },
        ),
        Panel(
            "Price an hour",
            "What readings of backlogs cost on demand, with the prices above: the defaults are those of us-east-1.",
            "currencyUSD",
            {"readings": price_per_hour("thunderagent_scaling_dynamodb_consumed_units_total")},
        ),
        Panel(
            "Processor time",
            "Cores that each process that scales pools uses.",
            "short",
            {"{{instance}}": f"rate(process_cpu_seconds_total[{RATE}]) {_SCALERS}"},
        ),
        Panel(
            "Memory",
            "Resident memory of each process that scales pools.",
            "bytes",
            {"{{instance}}": f"process_resident_memory_bytes {_SCALERS}"},
        ),
        Panel(
            "Open files",
            "File descriptors of each process that scales pools. A line that only rises is a leak.",
            "short",
            {"{{instance}}": f"process_open_fds {_SCALERS}"},
        ),
    ),
)

OPERATOR = Board(
    "thunderagent-operator",
    "ThunderAgent operator",
    "Whether pools are looked at, how they are decided on, and what that takes.",
    (_HEALTH, _CYCLES, _COSTS),
)
