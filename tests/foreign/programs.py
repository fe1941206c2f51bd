"""The projects that `tests/foreign/apart` runs, and the benchmark of inference, with their environments."""

from __future__ import annotations

from foreign.projects import Project, python_project

__all__ = ["APART", "HUEY_MOMENTARY"]

HUEY_MOMENTARY = (
    "huey.r.<queue>.chord:<chord>:<place>",
    "huey.c.<queue>.chord:<chord>",
    "huey.r.<queue>.<owner>.lock.<lock>",
)
_PROJECTS = (
    python_project("arq", "arq", apart="redis5", momentary=["retry:<job>"]),
    python_project(
        "huey-priority",
        "huey",
        apart="redis8",
        workload="huey_workload:main",
        variables={"HUEY_PRIORITY": "1"},
        momentary=HUEY_MOMENTARY,
    ),
    python_project("limits", "limits", apart="redis7"),
    python_project("limits-moving", "limits", apart="redis7", workload="limits_workload:main_moving"),
    python_project("redis-om", "redis_om", apart="redis8", model="foreign.redis_om_models:shop"),
    python_project("saq", "saq", apart="redis7"),
    python_project("taskiq", "taskiq_redis", apart="redis8", momentary=["schedule:<schedule>"]),
    python_project(
        "taskiq-streams",
        "taskiq_redis",
        apart="redis8",
        workload="taskiq_workload:main",
        variables={"TASKIQ_STREAMS": "1"},
        momentary=[
            "autoclaim:<group>:<queue>",
            "schedule:data:<schedule>",
            "schedule:time:<minute>",
            "schedule:cron",
            "schedule:interval",
        ],
    ),
)
APART: dict[str, Project] = {project.name: project for project in _PROJECTS}
