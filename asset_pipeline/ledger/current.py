"""The queries that say what is current: of each report one job, and of its manifests the newest.

Building blocks of ``reading``; nothing is executed here.
"""

from __future__ import annotations

from functools import reduce
from operator import add

from sqlalchemy import CTE, Subquery, and_, case, func, or_, select

from asset_pipeline.ledger.rows import COUNTS
from asset_pipeline.ledger.schema import jobs, manifests, pages


def current_jobs(month: str) -> CTE:
    """The current job of each report of ``month``, with all columns of ``jobs``."""
    newest_first = (jobs.c.revision.desc(), jobs.c.queued_at.desc(), jobs.c.job_id.desc())
    rank = func.row_number().over(partition_by=jobs.c.report_id, order_by=newest_first).label("rank")
    ranked = select(jobs, rank).where(jobs.c.month == month).subquery()
    return select(*[column for column in ranked.c if column.name != "rank"]).where(ranked.c.rank == 1).cte("current")


def latest_manifests(month: str) -> Subquery:
    """The newest edition of each report of ``month``, with all columns of ``manifests``."""
    rank = func.row_number().over(partition_by=manifests.c.report_id, order_by=manifests.c.edition.desc())
    ranked = select(manifests, rank.label("rank")).where(manifests.c.month == month).subquery()
    return select(ranked).where(ranked.c.rank == 1).subquery()


def page_accounts(current: CTE) -> Subquery:
    """Sums over the pages of each succeeded job, and how many of its pages are there and add up."""
    parts = ("archived", "collapsed", "decorative", "consumed", "not_shown", "quarantined")
    total = reduce(add, [pages.c[name] for name in parts])
    adds_up = or_(pages.c.drawn == total, and_(pages.c.drawn.is_(None), pages.c.reason.is_not(None)))
    return (
        select(
            pages.c.job_id,
            *[func.sum(pages.c[name]).label(name) for name in COUNTS],
            func.sum(case((pages.c.reason.is_not(None), 1), else_=0)).label("unread_pages"),
            func.sum(case((adds_up, 1), else_=0)).label("accounted"),
        )
        .join(current, current.c.job_id == pages.c.job_id)
        .where(current.c.state == "succeeded")
        .group_by(pages.c.job_id)
        .subquery()
    )
