"""Runs command lines of standard input one after the other in this one process, and tells how each ended.

A process for each would import everything each time. A line is what a person types, with ``> FILE`` at most. Started
by ``test_guides``; answers a JSON list of [line, exit status, standard error].
"""

from __future__ import annotations

import contextlib
import io
import json
import shlex
import sys
from pathlib import Path

from asset_pipeline.cli import main


def _end_of(words: list[str]) -> tuple[int, str]:
    target = None
    if ">" in words:
        place = words.index(">")
        words, target = words[:place], Path(words[place + 1])
    sys.argv = words
    out, err = io.StringIO(), io.StringIO()
    status = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as ended:
            status = int(ended.code or 0)
    if target:
        target.write_text(out.getvalue(), "utf-8")
    return status, err.getvalue()


if __name__ == "__main__":
    lines = sys.stdin.read().splitlines()
    ended = [(line, *_end_of(shlex.split(line, comments=True))) for line in lines]
    sys.stdout.write(json.dumps(ended))
