"""The dashboard "ThunderAgent pools": the fleet, then the chosen pool, then what it costs."""

from __future__ import annotations

from scripts.dashboards.panel import BY_POOL, CHOSEN, RATE, Board, Panel, Row, price_per_hour, quantiles

_FLEET = Row(
    "Fleet",
    (
        Panel(
            "Ready tasks",
            "Tasks that an agent could claim now. A count that was cut is a lower bound.",
            "short",
            {"ready": f"sum(thunderagent_pool_ready_tasks{{{CHOSEN}}})"},
            stat=True,
        ),
        Panel(
            "Oldest ready task",
            "How long the oldest task has waited that an agent could claim. This is what users feel.",
            "s",
            {"age": f"max(thunderagent_pool_oldest_ready_seconds{{{CHOSEN}}})"},
            stat=True,
            good_below=600,
        ),
        Panel(
            "Running tasks",
            "Tasks under a lease of an agent that is there.",
            "short",
            {"running": f"sum(thunderagent_pool_running_tasks{{{CHOSEN}}})"},
            stat=True,
        ),
        Panel(
            "Available agents",
            "Replicas that are there and ready.",
            "short",
            {"agents": f'sum(thunderagent_pool_replicas{{{CHOSEN}, state="available"}})'},
            stat=True,
        ),
        Panel(
            "FAILED in this time range",
            "Tasks that ended as FAILED: no retry left, or given up by their handler.",
            "short",
            {"failed": f'sum(increase(thunderagent_tasks_total{{{CHOSEN}, outcome="failed"}}[$__range]))'},
            stat=True,
            good_below=1,
        ),
        Panel(
            "Pools not Ready",
            "Pools that cannot be read, or whose replicas do not come up. Their condition Ready says why.",
            "short",
            {"pools": f'sum(thunderagent_pool_condition{{{CHOSEN}, type="Ready"}} == bool 0)'},
            stat=True,
            good_below=1,
        ),
        Panel(
            "Backlog by pool",
            "Ready tasks of each pool, with those whose agent was lost.",
            "short",
            {
                "{{namespace}} {{pool}}": f"thunderagent_pool_ready_tasks{{{CHOSEN}}} "
                f"+ thunderagent_pool_expired_tasks{{{CHOSEN}}}"
            },
        ),
        Panel(
            "Oldest ready task by pool",
            "How long each pool's oldest ready task has waited.",
            "s",
            {"{{namespace}} {{pool}}": f"thunderagent_pool_oldest_ready_seconds{{{CHOSEN}}}"},
        ),
        Panel(
            "Agents by pool",
            "Available replicas of each pool.",
            "short",
            {"{{namespace}} {{pool}}": f'{BY_POOL} (thunderagent_pool_replicas{{{CHOSEN}, state="available"}})'},
            stacked=True,
        ),
    ),
)

_POOL = Row(
    "The chosen pools",
    (
        Panel(
            "Backlog",
            "Where tasks are: ready to be claimed, waiting for others, running, or running past their lease.",
            "short",
            {
                state: f"sum(thunderagent_pool_{state}_tasks{{{CHOSEN}}})"
                for state in ("ready", "waiting", "running", "expired")
            },
        ),
        Panel(
            "Replicas",
            "What the backlog asks for, what is asked for after bounds and delays, and what is there. Desired above available: "
            "pods are on their way, or do not come up.",
            "short",
            {
                "wanted by the backlog": f"sum(thunderagent_pool_wanted_replicas{{{CHOSEN}}})",
                "desired": f"sum(thunderagent_pool_desired_replicas{{{CHOSEN}}})",
                "available": f'sum(thunderagent_pool_replicas{{{CHOSEN}, state="available"}})',
                "starting": f'sum(thunderagent_pool_replicas{{{CHOSEN}, state="starting"}})',
                "min": f"sum(thunderagent_pool_min_replicas{{{CHOSEN}}})",
                "max": f"sum(thunderagent_pool_max_replicas{{{CHOSEN}}})",
            },
        ),
        Panel(
            "Why",
            "Decisions a second, by the reason that settled them: why the pool scaled, or why it did not.",
            "cps",
            {"{{reason}}": f"sum by (reason) (rate(thunderagent_pool_decisions_total{{{CHOSEN}}}[{RATE}]))"},
            stacked=True,
        ),
        Panel(
            "Wait for a start",
            "Time from when a task was ready to when its run began.",
            "s",
            quantiles("thunderagent_task_wait_seconds"),
        ),
        Panel(
            "Run time",
            "Time of one run, whatever came of it.",
            "s",
            quantiles("thunderagent_task_run_seconds"),
        ),
        Panel(
            "Longest run under way",
            "How long an agent has held the task that it has held for longest. A line that only rises is a task that is stuck.",
            "s",
            {"{{namespace}} {{pool}}": f"max by (namespace, pool) (thunderagent_longest_run_seconds{{{CHOSEN}}})"},
        ),
        Panel(
            "Throughput",
            "Runs that ended a second, by outcome.",
            "cps",
            {"{{outcome}}": f"sum by (outcome) (rate(thunderagent_tasks_total{{{CHOSEN}}}[{RATE}]))"},
            stacked=True,
        ),
        Panel(
            "Share that fails",
            "Of the tasks that ended, how many ended as FAILED.",
            "percentunit",
            {
                "failed": f'sum(rate(thunderagent_tasks_total{{{CHOSEN}, outcome="failed"}}[{RATE}]))'
                f' / sum(rate(thunderagent_tasks_total{{{CHOSEN}, outcome=~"success|done|failed"}}[{RATE}]))'
            },
        ),
        Panel(
            "Errors by task type",
            "Runs that ended with an error a second: which type of task, which exception, and whether it will be tried again.",
            "cps",
            {
                "{{task_type}}: {{error}} ({{outcome}})": "sum by (task_type, error, outcome) "
                f"(rate(thunderagent_task_errors_total{{{CHOSEN}}}[{RATE}]))"
            },
        ),
        Panel(
            "Slots",
            "Slots of all agents, and how many of them hold a task.",
            "short",
            {
                "total": f"sum(thunderagent_slots{{{CHOSEN}}})",
                "busy": f"sum(thunderagent_slots_busy{{{CHOSEN}}})",
            },
        ),
        Panel(
            "Claims",
            "Claims a second. Lost ones were won by another agent; many of them mean many agents on a small backlog.",
            "cps",
            {"{{result}}": f"sum by (result) (rate(thunderagent_claims_total{{{CHOSEN}}}[{RATE}]))"},
        ),
        Panel(
            "Balance between agents",
            "Claims won since its start by the agent that has won most, and by the one that has won fewest.",
            "short",
            {
                "most": f'max(thunderagent_claims_total{{{CHOSEN}, result="won"}})',
                "fewest": f'min(thunderagent_claims_total{{{CHOSEN}, result="won"}})',
            },
        ),
        Panel(
            "Lost agents and lost leases",
            "Tasks a second that were taken over from an agent that stopped renewing, given up after that, or taken from an "
            "agent that still ran them.",
            "cps",
            {
                "taken over": f"sum(rate(thunderagent_take_overs_total{{{CHOSEN}}}[{RATE}]))",
                "given up": f"sum(rate(thunderagent_buried_total{{{CHOSEN}}}[{RATE}]))",
                "lost: {{reason}}": f"sum by (reason) (rate(thunderagent_leases_lost_total{{{CHOSEN}}}[{RATE}]))",
                "children replaced": f"sum(rate(thunderagent_children_replaced_total{{{CHOSEN}}}[{RATE}]))",
            },
        ),
        Panel(
            "Renewals",
            "Renewals of leases a second, by result.",
            "cps",
            {"{{result}}": f"sum by (result) (rate(thunderagent_renewals_total{{{CHOSEN}}}[{RATE}]))"},
        ),
        Panel(
            "Waiting tasks",
            "Looks a second at tasks that wait for others, and what came of them.",
            "cps",
            {"{{result}}": f"sum by (result) (rate(thunderagent_dependency_looks_total{{{CHOSEN}}}[{RATE}]))"},
        ),
    ),
)

_UNITS = "thunderagent_dynamodb_consumed_units_total"

_DYNAMODB = Row(
    "DynamoDB and its price",
    (
        Panel(
            "Calls",
            "Calls of agents to DynamoDB a second, by operation. A condition that failed is a claim that another one won.",
            "reqps",
            {
                "{{operation}} {{result}}": "sum by (operation, result) "
                f"(rate(thunderagent_dynamodb_calls_total{{{CHOSEN}}}[{RATE}]))"
            },
        ),
        Panel(
            "Latency, p99",
            "Time of a call, its retries inside the client included.",
            "s",
            {
                "{{operation}}": "histogram_quantile(0.99, sum by (operation, le) "
                f"(rate(thunderagent_dynamodb_call_seconds_bucket{{{CHOSEN}}}[{RATE}])))"
            },
        ),
        Panel(
            "Throttled attempts",
            "Attempts a second that were refused for throughput. The client makes them again, so that a call may be late and "
            "succeed; the calls shown beside them failed.",
            "reqps",
            {
                "{{operation}}": "sum by (operation) "
                f"(rate(thunderagent_dynamodb_throttled_attempts_total{{{CHOSEN}}}[{RATE}]))",
                "{{operation}}, the call failed": "sum by (operation) "
                f'(rate(thunderagent_dynamodb_calls_total{{{CHOSEN}, result="throttled"}}[{RATE}]))',
            },
        ),
        Panel(
            "Retried attempts",
            "Attempts a second that the client made again by itself, for throughput or for a connection that broke.",
            "reqps",
            {"{{operation}}": f"sum by (operation) (rate(thunderagent_dynamodb_retries_total{{{CHOSEN}}}[{RATE}]))"},
        ),
        Panel(
            "Capacity units",
            "Units a second that agents consume, as DynamoDB says.",
            "cps",
            {"{{operation}}": f"sum by (operation) (rate({_UNITS}{{{CHOSEN}}}[{RATE}]))"},
            stacked=True,
        ),
        Panel(
            "Price an hour",
            "What the agents' capacity units cost on demand, with the prices above: the defaults are those of us-east-1.",
            "currencyUSD",
            {"agents": price_per_hour(_UNITS, CHOSEN)},
        ),
        Panel(
            "Capacity units a task",
            "Units consumed for each run that ended, polls and all.",
            "short",
            {"units": f"sum(rate({_UNITS}{{{CHOSEN}}}[{RATE}])) / sum(rate(thunderagent_tasks_total{{{CHOSEN}}}[{RATE}]))"},
        ),
        Panel(
            "Clock offset",
            "Each machine's wall clock minus DynamoDB's time. Leases do not depend on it.",
            "s",
            {"{{instance}}": f"thunderagent_clock_offset_seconds{{{CHOSEN}}}"},
            signed=True,
        ),
        Panel(
            "Age of the last poll",
            "How long ago each agent last read the index with success. The wait between empty polls is 10 s.",
            "s",
            {"{{instance}}": f"time() - thunderagent_last_poll_timestamp_seconds{{{CHOSEN}}}"},
        ),
    ),
)

POOLS = Board(
    "thunderagent-pools",
    "ThunderAgent pools",
    "Is work flowing, how long does a task wait, why did a pool scale, which tasks fail, and what does it cost.",
    (_FLEET, _POOL, _DYNAMODB),
)
