"""Slots: how many workers of all machines may use one provider at a time, whoever they are.

A slot is a row with a lease: a worker that vanished gives it back by time. The count is the caller's, so that
changing a setting needs no migration: slots at or beyond it are not given out again. Who waits for one, and what for,
belongs in ``work.slots``.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, or_, select, update

from asset_pipeline.errors import LeaseLost
from asset_pipeline.ledger.schema import slots
from asset_pipeline.ledger.statements import insert_new


def take_slot(tx: Connection, provider: str, count: int, holder: str, until: datetime, now: datetime) -> int | None:
    """The number of a slot that is ``holder``'s until then; None when all ``count`` are others'."""
    insert_new(tx, slots, [{"provider": provider, "slot": number} for number in range(count)])
    free = or_(slots.c.until.is_(None), slots.c.until <= now)
    first = (
        select(slots.c.slot)
        .where(slots.c.provider == provider, slots.c.slot < count, free)
        .order_by(slots.c.slot)
        .limit(1)
        .with_for_update(skip_locked=True)
        .scalar_subquery()
    )
    taken = update(slots).where(slots.c.provider == provider, slots.c.slot == first)
    number = tx.execute(taken.values(holder=holder, until=until).returning(slots.c.slot)).scalar_one_or_none()
    return None if number is None else int(number)


def hold_slot(tx: Connection, provider: str, slot: int, holder: str, until: datetime | None) -> None:
    """Hold the slot until then; None gives it back. Raises LeaseLost when it is another's by now."""
    mine = slots.c.provider == provider, slots.c.slot == slot, slots.c.holder == holder
    values = {"until": until, "holder": holder if until else None}
    if tx.execute(update(slots).where(*mine).values(values)).rowcount != 1:
        raise LeaseLost(provider)
