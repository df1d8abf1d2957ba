"""Decoder processes: the decoder is the enemy's computer.

Documents are read only in here, each in a process of its own that is forked from a warm zygote, has
limits, and is killed at its deadline. Nothing a decoder says is believed before ``answers`` checked
it. What is read belongs in the engines; which page ranges and how often, in ``work`` and ``report``.
"""

from __future__ import annotations

from asset_pipeline.extraction.sandbox.answers import DecoderLost
from asset_pipeline.extraction.sandbox.pool import DecoderPool

__all__ = ["DecoderLost", "DecoderPool"]
