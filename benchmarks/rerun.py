"""What it costs to run a month of 10,000 pictures again when nothing is new, and whether other months make it dearer.

    .venv/bin/python benchmarks/rerun.py [--documents 100] [--pages 100] [--months 24] [--repeat 5] [--home FOLDER]

Makes the documents, runs their month once, and then again beside a month without any document, in turns: what the full
month takes more than the empty one is the work, what the empty one takes is Dagster's. Then the ledger gets the same
month again under other names, ``--months`` times, and each of both is run in a process of its own for its peak memory.
The exit status is 0 when both bounds hold: 3 s of work, 1.1 times the memory.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pikepdf
from sqlalchemy import Table, func, insert, literal, select

from asset_pipeline.defs.instance import materialize_months, open_instance
from asset_pipeline.installation import open_installation
from asset_pipeline.ledger.database import Ledger
from asset_pipeline.ledger.schema import attempts, jobs, manifests, pages, placements, receipts, units, uploads
from asset_pipeline.settings import Settings, load_settings

FULL, EMPTY = "2025-05", "2025-06"
SIDE = 24
MOST_SECONDS, MOST_MEMORY = 3.0, 1.1


def make_document(path: Path, number: int, page_count: int) -> None:
    """A report with another small picture on each page."""
    random = Random(number)
    with pikepdf.new() as pdf:
        for _ in range(page_count):
            page = pdf.add_blank_page(page_size=(200, 200))
            picture = pdf.make_stream(random.randbytes(SIDE * SIDE * 3))
            picture.Type, picture.Subtype = pikepdf.Name.XObject, pikepdf.Name.Image
            picture.Width = picture.Height = SIDE
            picture.BitsPerComponent, picture.ColorSpace = 8, pikepdf.Name.DeviceRGB
            page.Resources = pikepdf.Dictionary(XObject=pikepdf.Dictionary(Im0=picture))
            page.Contents = pdf.make_stream(b"q 100 0 0 100 20 20 cm /Im0 Do Q")
        pdf.save(path, deterministic_id=True)


def settings_of(home: Path) -> Settings:
    return load_settings(home=home, settle_seconds=0, first_month="2015-01")


def prepare(home: Path, documents: int, page_count: int) -> None:
    """The documents in the inbox, and their month run once."""
    inbox = home / "inbox" / "city" / FULL
    inbox.mkdir(parents=True, exist_ok=True)
    for number in range(documents):
        if not (inbox / f"{number}.pdf").exists():
            make_document(inbox / f"{number}.pdf", number, page_count)
    began = time.monotonic()
    materialize_months(settings_of(home), [FULL])
    print(f"first run: {time.monotonic() - began:.1f} s")


def seconds_of(settings: Settings, month: str, instance: object) -> tuple[float, float]:
    """Seconds and processor seconds of one run."""
    began, used = time.monotonic(), time.process_time()
    materialize_months(settings, [month], instance=instance)
    return time.monotonic() - began, time.process_time() - used


def compare(home: Path, repeat: int) -> dict[str, float]:
    """Medians of the full month and of the empty one, run in turns."""
    settings = settings_of(home)
    found: dict[str, list[tuple[float, float]]] = {FULL: [], EMPTY: []}
    with open_instance(settings) as instance:
        for _ in range(repeat + 1):
            for month, seconds in found.items():
                seconds.append(seconds_of(settings, month, instance))
    # The first of each pays for imports.
    wall, processor = ({m: statistics.median(pair[at] for pair in s[1:]) for m, s in found.items()} for at in (0, 1))
    return {
        "full_seconds": wall[FULL],
        "empty_seconds": wall[EMPTY],
        "work_seconds": wall[FULL] - wall[EMPTY],
        "work_processor_seconds": processor[FULL] - processor[EMPTY],
    }


def peak_of(home: Path) -> int:
    """Peak resident bytes of a process that runs the full month again."""
    command = [sys.executable, __file__, "--home", str(home), "--once"]
    return int(json.loads(subprocess.run(command, check=True, capture_output=True).stdout.splitlines()[-1]))


def own_peak() -> int:
    """Peak resident bytes of this program; getrusage would tell those of the one that started it."""
    status = Path("/proc/self/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def clone(ledger: Ledger, number: int) -> None:
    """The rows of the full month once more, under the name of an earlier month."""
    month = f"{2015 + number // 12}-{number % 12 + 1:02d}"
    mark = f"{number:04d}"
    renamed = {"job_id", "unit_id", "attempt_id", "report_id", "upload_id", "job_key", "key", "correlation_id"}
    with ledger.begin() as tx:
        for table in (jobs, units, attempts, pages, placements, receipts, manifests, uploads):
            columns = {
                column.name: literal(month)
                if column.name == "month"
                else (literal(mark) + func.substr(column, 5))
                if column.name in renamed
                else column
                for column in table.c
            }
            query = select(*columns.values()).where(_of_month(table))
            tx.execute(insert(table).from_select(list(columns), query))


def _of_month(table: Table) -> object:
    if "month" in table.c:
        return table.c.month == FULL
    return table.c.job_id.in_(select(jobs.c.job_id).where(jobs.c.month == FULL))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--documents", type=int, default=100)
    parser.add_argument("--pages", type=int, default=100)
    parser.add_argument("--months", type=int, default=24)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--home", type=Path)
    parser.add_argument("--once", action="store_true", help="run the month once more and tell the peak memory")
    asked = parser.parse_args()
    if asked.once:
        materialize_months(settings_of(asked.home), [FULL])
        print(own_peak())
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        home = asked.home or Path(temporary, "home")
        prepare(home, asked.documents, asked.pages)
        figures: dict[str, float] = compare(home, asked.repeat)
        alone = peak_of(home)
        with open_installation(settings_of(home)) as inst:
            with inst.ledger.read() as conn:
                there = conn.execute(select(func.count(func.distinct(jobs.c.month)))).scalar_one()
            for number in range(there - 1, asked.months):
                clone(inst.ledger, number)
        beside = peak_of(home)
        figures |= {"peak_bytes": alone, "peak_bytes_beside_other_months": beside, "memory_ratio": beside / alone}
        figures |= {f"{name}_beside_other_months": value for name, value in compare(home, asked.repeat).items()}
    print(json.dumps({"at": datetime.now(UTC).isoformat(timespec="minutes")} | figures, indent=1))
    late = max(figures["work_seconds"], figures["work_seconds_beside_other_months"]) > MOST_SECONDS
    return int(late or figures["memory_ratio"] > MOST_MEMORY)


if __name__ == "__main__":
    sys.exit(main())
