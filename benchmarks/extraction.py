"""How fast extraction is, beside other tools and beside what the bare library calls cost.

    .venv/bin/python benchmarks/extraction.py [--workload NAME]… [--repeat N] [--json FILE]

Each tool reads each workload in a process of its own, one after the other and in turns, so that a busy
machine is busy for all of them. Python tools are timed from when their libraries are imported and, for
ours, its decoder processes are warm: what starting costs is the workload ``one-page``. Tools that are not
on the machine are named as such. What the figures mean is in ``README.md``; the documents in ``workloads``.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

COUNT = len(os.sched_getaffinity(0))
LOADED = 0.3
"""Load average above which the machine is said to be busy."""


@dataclass(frozen=True)
class Run:
    """What one tool took for one workload: seconds of work, of processors, pictures, peak memory of any process."""

    seconds: float
    cpu_seconds: float
    pictures: int
    peak_bytes: int


# What the tools do. Each takes the documents and an empty folder, returns pictures written and peak bytes (0: own).


def ours(workers: int) -> Callable[[Sequence[Path], Path], Callable[[], tuple[int, int]]]:
    """`extract` on ``workers`` decoder processes: walk, decode, check, digest, write."""

    def prepare(documents: Sequence[Path], out: Path) -> Callable[[], tuple[int, int]]:
        from concurrent.futures import ThreadPoolExecutor

        import workloads

        from asset_pipeline.extraction.report import extract
        from asset_pipeline.extraction.sandbox import DecoderPool
        from asset_pipeline.policy import Policy

        policy = Policy()
        pool = DecoderPool(workers, policy).__enter__()
        with tempfile.TemporaryDirectory() as scratch:
            extract(workloads.make("one-page", Path(scratch))[0], out / "warm", policy=policy, workers=1, pool=pool)

        def work() -> tuple[int, int]:
            def read(document: Path) -> Any:
                within = workers if len(documents) == 1 else 1
                return extract(document, out / document.stem, policy=policy, workers=within, pool=pool)

            with ThreadPoolExecutor(1 if len(documents) == 1 else workers) as callers:
                reports = list(callers.map(read, documents))
            refused = {report.outcome for report in reports} - {"ok"}
            if refused:
                raise SystemExit(f"a document was refused: {refused}")
            return sum(len(report.pictures) for report in reports), max(report.peak_rss_bytes for report in reports)

        return work

    return prepare


def limit(processes: int) -> Callable[[Sequence[Path], Path], Callable[[], tuple[int, int]]]:
    """The bare library calls: raw read, SHA-256, strict decode at an eighth, thumbnail, write. JPEG only.

    Of several ``processes`` each has its share of the pages, which shows what this machine's other cores are worth.
    """

    def prepare(documents: Sequence[Path], out: Path) -> Callable[[], tuple[int, int]]:
        read = _bare_calls(documents, out)
        if processes == 1:
            return lambda: (read(0, 1), 0)

        def work() -> tuple[int, int]:
            started = []
            for share in range(processes):
                pid = os.fork()
                if pid == 0:
                    read(share, processes)
                    os._exit(0)
                started.append(pid)
            if any(os.waitpid(pid, 0)[1] for pid in started):
                raise SystemExit("a process failed")
            return len(list(out.iterdir())) // 2, 0

        return work

    return prepare


def _bare_calls(documents: Sequence[Path], out: Path) -> Callable[[int, int], int]:
    """What reads each ``step``-th page from ``first`` on; the number of its pictures."""
    import pikepdf
    import simplejpeg
    from PIL import Image

    def read(first: int, step: int) -> int:
        count = 0
        for document in documents:
            with pikepdf.open(document) as pdf:
                for number in range(first, len(pdf.pages), step):
                    page = pdf.pages[number]
                    for image in page.obj.Resources.XObject.values():
                        data = image.read_raw_bytes()
                        digest = hashlib.sha256(data).hexdigest()
                        shown = simplejpeg.decode_jpeg(
                            data, "RGB", strict=True, min_factor=8, min_height=1, min_width=1
                        )
                        thumbnail = Image.fromarray(shown)
                        thumbnail.thumbnail((160, 160))
                        small = io.BytesIO()
                        thumbnail.save(small, "JPEG")
                        (out / f"{digest}.jpg").write_bytes(data)
                        (out / f"{digest}-small.jpg").write_bytes(small.getvalue())
                        count += 1
        return count

    return read


def usual_script(documents: Sequence[Path], out: Path) -> Callable[[], tuple[int, int]]:
    """What people write: pdfimages, then Pillow to load, SHA-256 and a thumbnail of each file."""
    from PIL import Image

    def work() -> tuple[int, int]:
        files = _run_pdfimages(documents, out)
        for file in files:
            hashlib.sha256(file.read_bytes()).hexdigest()
            if file.suffix not in (".jpg", ".png", ".tif"):
                continue
            with Image.open(file) as picture:
                picture.load()
                picture.thumbnail((160, 160))
                picture.convert("RGB").save(file.with_suffix(".small.jpg"))
        return len(files), 0

    return work


def pdfimages(documents: Sequence[Path], out: Path) -> Callable[[], tuple[int, int]]:
    """Poppler's `pdfimages -all`: checks nothing; CCITT and JBIG2 are written undecoded."""
    return lambda: (len(_run_pdfimages(documents, out)), 0)


def mutool(documents: Sequence[Path], out: Path) -> Callable[[], tuple[int, int]]:
    """MuPDF's `mutool extract`, where somebody has it."""

    def work() -> tuple[int, int]:
        for index, document in enumerate(documents):
            folder = out / str(index)
            folder.mkdir()
            subprocess.run(["mutool", "extract", document], cwd=folder, check=True, capture_output=True)
        return len(list(out.glob("*/*"))), 0

    return work


def _run_pdfimages(documents: Sequence[Path], out: Path) -> list[Path]:
    for index, document in enumerate(documents):
        subprocess.run(["pdfimages", "-all", document, out / f"{index}"], check=True, capture_output=True)
    return sorted(out.iterdir())


def pypdf(documents: Sequence[Path], out: Path) -> Callable[[], tuple[int, int]]:
    """pypdf's `page.images`, which decodes and encodes again."""
    from pypdf import PdfReader

    def work() -> tuple[int, int]:
        count = 0
        for document in documents:
            for page in PdfReader(document).pages:
                for image in page.images:
                    (out / f"{count}{Path(image.name).suffix}").write_bytes(image.data)
                    count += 1
        return count, 0

    return work


def pikepdf(documents: Sequence[Path], out: Path) -> Callable[[], tuple[int, int]]:
    """pikepdf's `get_images` and `extract_to`; what it cannot extract is passed over."""
    import pikepdf as library

    def work() -> tuple[int, int]:
        count = 0
        for document in documents:
            with library.open(document) as pdf:
                for page in pdf.pages:
                    for image in page.get_images().values():
                        try:
                            library.PdfImage(image).extract_to(fileprefix=str(out / f"{count}"))  # type: ignore[arg-type]
                        except (library.PdfError, NotImplementedError, ValueError, FileNotFoundError, RuntimeError):
                            continue
                        count += 1
        return count, 0

    return work


def pdfium(documents: Sequence[Path], out: Path) -> Callable[[], tuple[int, int]]:
    """PDFium's bare decode of each picture object, and Pillow's PNG of it: no checks, no placements."""
    import pypdfium2

    def work() -> tuple[int, int]:
        count = 0
        for document in documents:
            opened = pypdfium2.PdfDocument(document)
            for page in opened:
                for thing in page.get_objects(filter=[pypdfium2.raw.FPDF_PAGEOBJ_IMAGE]):
                    bitmap = thing.get_bitmap()
                    picture = bitmap.to_pil()
                    if thing.get_metadata().bits_per_pixel == 1:
                        picture = picture.convert("1")
                    picture.save(out / f"{count}.png")
                    bitmap.close()
                    count += 1
                page.close()
            opened.close()
        return count, 0

    return work


TOOLS: dict[str, Callable[[Sequence[Path], Path], Callable[[], tuple[int, int]]]] = {
    "extract, one process": ours(1),
    "extract, all cores": ours(COUNT),
    "limit": limit(1),
    "limit, all cores": limit(COUNT),
    "usual script": usual_script,
    "pdfimages": pdfimages,
    "pypdf": pypdf,
    "pikepdf": pikepdf,
    "pdfium": pdfium,
    "mutool": mutool,
}
PROGRAMS = {"pdfimages": "pdfimages", "usual script": "pdfimages", "mutool": "mutool"}
SLOW = {"flate-plain", "flate-predictor", "bundle-900"}
"""Workloads in which the others take a minute or more: they run once, whatever --repeat says. So does pypdf."""

_ONE, _ALL = "extract, one process", "extract, all cores"
TARGETS: dict[str, list[tuple[str, str, float]]] = {
    "jpeg": [(_ONE, "limit", 1.25), (_ONE, "usual script", 0.5), (_ALL, "pdfimages", 1.7), (_ALL, _ONE, 1 / 1.8)],
    "flate-predictor": [(_ONE, "pdfimages", 0.25), (_ALL, _ONE, 1 / 1.8)],
    "flate-plain": [(_ONE, "pdfimages", 0.6), (_ALL, _ONE, 1 / 1.8)],
    "ccitt": [(_ONE, "pdfium", 0.8), (_ALL, _ONE, 1 / 1.8)],
    "jbig2": [(_ONE, "pdfium", 1.2), (_ALL, _ONE, 1 / 1.8)],
    "reports": [(_ALL, _ONE, 1 / 1.8)],
    "bundle-900": [(_ALL, _ONE, 1 / 1.8)],
}
"""For a workload: the ratio of which two tools is at most what. The last needs two cores."""
MOST_BYTES = 300_000_000
MOST_START_SECONDS = 0.6
FLAT = 1.2
"""Memory of 900 pages over that of 100."""


def main() -> None:
    """Measure, print, and say with the exit status whether all targets are met."""
    import workloads

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workload", action="append", choices=list(workloads.WORKLOADS), help="default: all")
    parser.add_argument("--tool", action="append", choices=list(TOOLS), help="default: all that are there")
    parser.add_argument("--repeat", type=int, default=5, help="turns (default 5)")
    parser.add_argument("--documents", type=Path, help="folder to keep the documents in (default: a temporary one)")
    parser.add_argument("--json", type=Path, help="file for all figures")
    chosen = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    with tempfile.TemporaryDirectory(prefix="benchmark-") as scratch:
        root = chosen.documents or Path(scratch) / "documents"
        root.mkdir(parents=True, exist_ok=True)
        before = os.getloadavg()[0]
        figures: dict[str, Any] = {"cores": COUNT, "load_before": round(before, 2), "workloads": {}, "start": []}
        print(f"{COUNT} cores, load {before:.2f}{' (busy: believe ratios only)' if before > LOADED * COUNT else ''}")
        missed: list[str] = []
        names = chosen.workload or list(workloads.WORKLOADS)
        if "one-page" in names:
            missed += _measure_start(workloads.make("one-page", root)[0], Path(scratch), chosen.repeat, figures)
        for name in names:
            if name != "one-page":
                documents = workloads.make(name, root)
                runs = _measure(name, documents, Path(scratch), chosen.repeat, chosen.tool or list(TOOLS))
                missed += _show(name, runs, figures)
        missed += _check_flatness(figures)
    print()
    for line in missed:
        print(f"missed: {line}")
    if not missed:
        print("all targets met")
    if chosen.json:
        chosen.json.write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
    sys.exit(1 if missed else 0)


def _measure_start(document: Path, scratch: Path, repeat: int, figures: dict[str, Any]) -> list[str]:
    """Seconds from calling the command to the first picture of a document of one page."""
    took = []
    # Compiled modules are kept, as those of an installed package are.
    surroundings = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for turn in range(repeat + 1):  # the first one reads the libraries from disk
        out = scratch / f"start-{turn}"
        command = [sys.executable, "-m", "asset_pipeline.cli", "extract", str(document), "--out", str(out), "--json"]
        began = time.perf_counter()
        subprocess.run(command, cwd=ROOT, env=surroundings, check=True, capture_output=True)
        took.append(time.perf_counter() - began)
        shutil.rmtree(out)
    figures["start"] = took[1:]
    middle = statistics.median(took[1:])
    print(f"\none-page\n  cold start to the picture and the report  {middle:.2f} s  (target {MOST_START_SECONDS})")
    return [f"one-page: {middle:.2f} s"] if middle > MOST_START_SECONDS else []


def _measure(
    name: str, documents: list[Path], scratch: Path, repeat: int, tools: Sequence[str]
) -> dict[str, list[Run]]:
    runs: dict[str, list[Run]] = defaultdict(list)
    print(f"\n{name}: {len(documents)} documents, {sum(file.stat().st_size for file in documents) / 1e6:.1f} MB")
    for turn in range(repeat):
        for tool in tools:
            if tool.startswith("limit") and name != "jpeg":
                continue
            program = PROGRAMS.get(tool)
            if program and shutil.which(program) is None:
                if not turn:
                    print(f"  {tool:22} {program} not found")
                continue
            if turn and (tool == "pypdf" or (name in SLOW and not tool.startswith("extract"))):
                continue
            run = _run_apart(tool, documents, scratch / "out")
            if run is not None:
                runs[tool].append(run)
    return runs


def _run_apart(tool: str, documents: Sequence[Path], out: Path) -> Run | None:
    """Run ``tool`` in a process of its own."""
    out.mkdir()
    command = [sys.executable, str(Path(__file__).resolve()), "--apart", tool, str(out), *map(str, documents)]
    with tempfile.TemporaryFile("w+") as answer:
        child = subprocess.Popen(command, stdout=answer, stderr=subprocess.PIPE, text=True, cwd=ROOT)
        _, complaint = child.communicate()
        shutil.rmtree(out)
        if child.returncode:
            print(f"  {tool:22} failed: {complaint.strip().splitlines()[-1][:80] if complaint.strip() else '?'}")
            return None
        answer.seek(0)
        return Run(**json.loads(answer.read()))


def _work_apart(tool: str, out: str, documents: Sequence[str]) -> None:
    """The process that ``_run_apart`` starts."""
    import resource

    work = TOOLS[tool]([Path(document) for document in documents], Path(out))
    used, began = _cpu_seconds(), time.perf_counter()
    pictures, peak = work()
    seconds, used = time.perf_counter() - began, _cpu_seconds() - used
    if not peak:
        kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        peak = max(resource.getrusage(kind).ru_maxrss for kind in kinds) * 1024
    run = {"seconds": seconds, "cpu_seconds": used, "pictures": pictures, "peak_bytes": peak}
    print(json.dumps(run), flush=True)
    os._exit(0)  # the decoder processes end with this one; a pool's orderly end is not what is timed


def _cpu_seconds() -> float:
    """What this process, its children and theirs have used of processors, in steps of the kernel's clock (10 ms)."""
    ours = os.times()
    total = ours.user + ours.system + ours.children_user + ours.children_system
    children: set[str] = set()
    for thread in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # it has ended, and another has its children now
            children.update((thread / "children").read_text("ascii").split())
    for child in children:
        fields = Path(f"/proc/{child}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
        total += sum(int(ticks) for ticks in fields[11:15]) / os.sysconf("SC_CLK_TCK")
    return total


def _show(name: str, runs: dict[str, list[Run]], figures: dict[str, Any]) -> list[str]:
    middle = {tool: statistics.median(run.seconds for run in each) for tool, each in runs.items()}
    used = {tool: statistics.median(run.cpu_seconds for run in each) for tool, each in runs.items()}
    base = middle.get(_ONE)
    for tool, each in runs.items():
        run, seconds = each[0], middle[tool]
        memory = max(each, key=lambda run: run.peak_bytes).peak_bytes / 1e6
        ratio = f"{seconds / base:6.2f}" if base else "      "
        print(
            f"  {tool:22} {seconds:8.3f} s {ratio} x ours {used[tool]:8.2f} s of processors"
            f" {run.pictures / seconds:9.1f} pictures/s"
            f" {run.pictures:5} pictures {memory:6.0f} MB"
        )
    figures["workloads"][name] = {
        tool: {
            "seconds": [run.seconds for run in each],
            "cpu_seconds": [run.cpu_seconds for run in each],
            "pictures": each[0].pictures,
            "peak_bytes": max(run.peak_bytes for run in each),
        }
        for tool, each in runs.items()
    }
    missed = []
    for tool, other, most in TARGETS.get(name, []):
        if tool not in middle or other not in middle or (other == _ONE and COUNT != 2):
            continue
        found = middle[tool] / middle[other]
        of_processors = f", of processors {used[tool] / used[other]:.2f}" if tool == _ONE and used[other] else ""
        print(f"    {tool} / {other}: {found:.2f} (target {most:.2f}){of_processors}")
        if found > most:
            missed.append(f"{name}: {tool} / {other} is {found:.2f}, not {most:.2f}")
    shared, alone = middle.get("limit, all cores"), middle.get("limit")
    if shared and alone:
        print(f"    limit, all cores / limit: {shared / alone:.2f}, which is what the other cores are worth here")
    for tool in (_ONE, _ALL):
        peak = max((run.peak_bytes for run in runs.get(tool, [])), default=0)
        if peak > MOST_BYTES:
            missed.append(f"{name}: {tool} takes {peak / 1e6:.0f} MB")
    return missed


def _check_flatness(figures: dict[str, Any]) -> list[str]:
    peaks = [figures["workloads"].get(f"bundle-{pages}", {}).get(_ONE, {}).get("peak_bytes") for pages in (100, 900)]
    if None in peaks:
        return []
    ratio = peaks[1] / peaks[0]
    print(f"\nmemory of 900 pages over that of 100: {ratio:.2f} (target {FLAT})")
    return [f"memory grows with pages: {ratio:.2f}"] if ratio > FLAT else []


if __name__ == "__main__":
    if sys.argv[1:2] == ["--apart"]:
        _work_apart(sys.argv[2], sys.argv[3], sys.argv[4:])
    else:
        main()
