"""Starts the zygote: ``python -m asset_pipeline.extraction.sandbox.zygote_start DESCRIPTOR PARENT``.

Apart from ``zygote`` because a sixth of its start was collecting garbage among modules that stay.
"""

from __future__ import annotations

import gc


def _start() -> None:
    gc.disable()  # the zygote enables it again
    from asset_pipeline.extraction.sandbox.zygote import main

    main()


if __name__ == "__main__":
    _start()
