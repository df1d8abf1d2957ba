"""What assets, sensor and schedules are given: the installation to work in, and frames for those who load assets.

``Pipeline`` is a plain object, not a configurable resource, so that no address or credential becomes
run configuration that Dagster stores and shows. Settings are read when something is opened, not at import.
How failures are told belongs in ``border``.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import dagster as dg

from asset_pipeline.installation import Installation, open_installation
from asset_pipeline.settings import Settings, load_settings
from asset_pipeline.work.clock import utc_now

if TYPE_CHECKING:
    import pandas as pd

Progress = Callable[[str, int, int], None]


@dataclass(slots=True)
class Pipeline:
    """The installation, and how it is worked in this process. ``settings`` None: those of the environment.

    ``attended``: a person waits for the answer, so a store that is away is told at once instead of tried
    again over minutes. ``ended_by`` is the exception that ended the last step, for who runs in this process.
    """

    settings: Settings | None = None
    workers: int | None = None
    progress: Progress | None = None
    attended: bool = False
    clock: Callable[[], datetime] = utc_now
    ended_by: BaseException | None = None

    def open(self) -> AbstractContextManager[Installation]:
        """Open the installation. See ``open_installation``."""
        return open_installation(self.settings or load_settings())


class LedgerFrames(dg.IOManager):
    """Loads an asset's months from the ledger as a pandas frame; stores nothing, since the ledger has it all.

    ``defs.load_asset_value("validated_images", partition_key="2026-10")`` in a notebook ends up here.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    def handle_output(self, context: dg.OutputContext, obj: object) -> None:
        """Nothing: what an asset made is in the ledger and the archive before the asset returns."""

    def load_input(self, context: dg.InputContext) -> pd.DataFrame:
        """Rows of the asset for the partitions in question; names only where the policy shows names."""
        from asset_pipeline.defs.frames import FRAMES

        name = context.asset_key.path[-1]
        with self._pipeline.open() as inst:
            return FRAMES[name](inst, list(context.asset_partition_keys))
