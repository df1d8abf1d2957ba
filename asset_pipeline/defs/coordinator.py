"""Writes into a run who asked for it, where a proxy in front of the web pages logs people in.

Dagster's pages have no login. Behind such a proxy the setting ``actor_header`` names the header in which it tells who
is there; the name goes with the run as a tag and from there into every event of its work. Whatever tags came with the
request are overwritten, so nobody can pass for another. Without the setting, or for a schedule, nobody is named.
"""

from __future__ import annotations

from collections.abc import Mapping

from dagster import DagsterRun
from dagster._core.run_coordinator import QueuedRunCoordinator, SubmitRunContext
from dagster._core.workspace.context import WorkspaceRequestContext

from asset_pipeline.defs.run_tags import priority
from asset_pipeline.evidence.actor import Actor, Source
from asset_pipeline.settings import load_settings

ACTOR = "asset_pipeline/actor"
ACTOR_SOURCE = "asset_pipeline/actor_source"
NOBODY = "nobody"

_SOURCES: Mapping[str, Source] = {"authenticated": "authenticated", "claimed": "claimed"}


class PeopleRunCoordinator(QueuedRunCoordinator):
    """Dagster's queue, with the tags above set on what the web pages submit, and a place in it for every run."""

    def submit_run(self, context: SubmitRunContext) -> DagsterRun:
        header = load_settings().actor_header
        by_hand = _from_the_pages(context)
        added = priority(context.dagster_run.tags, by_hand=by_hand)
        if by_hand:
            name = context.get_request_header(header) if header else None
            tags = context.dagster_run.tags
            if name:
                added |= {ACTOR: Actor(name, "authenticated").name, ACTOR_SOURCE: "authenticated"}
            elif ACTOR in tags or ACTOR_SOURCE in tags:
                added |= {ACTOR: Actor(tags.get(ACTOR, NOBODY), "claimed").name, ACTOR_SOURCE: "claimed"}
        if added:
            self._instance.add_run_tags(context.dagster_run.run_id, added)
        return super().submit_run(context)


def actor_of_run(tags: Mapping[str, str]) -> Actor | None:
    """Who asked for the run with ``tags``; None where that is not told."""
    source = _SOURCES.get(tags.get(ACTOR_SOURCE, ""))
    return Actor(tags[ACTOR], source) if source and ACTOR in tags else None


def _from_the_pages(context: SubmitRunContext) -> bool:
    """Whether a web request submits the run; the daemon does so for schedules, sensors, retries and backfills."""
    return isinstance(context.workspace, WorkspaceRequestContext) and context.workspace.source is not None
