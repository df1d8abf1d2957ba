"""Reads the YAML of a policy file, strictly: a key that stands twice in one mapping is told, not overruled.

What may stand in the file belongs in ``policy``. Apart from it because a process that has no policy file need not
import YAML.
"""

from __future__ import annotations

from typing import Any

import yaml


class DoubledKey(Exception):
    """``key`` stands a second time in the same mapping, in ``line`` (from 1)."""

    def __init__(self, key: str, line: int) -> None:
        super().__init__(f"{key} again in line {line}")
        self.key = key
        self.line = line


def read_yaml(text: str) -> Any:
    """The one document of ``text``. Raises DoubledKey, yaml.YAMLError, ValueError or RecursionError."""
    return yaml.load(text, _Loader)  # noqa: S506 - it is a safe loader


class _Loader(yaml.SafeLoader):
    def compose_mapping_node(self, anchor: dict[Any, yaml.Node]) -> yaml.MappingNode:
        """As it was written, before merge keys are taken in: those may be overruled."""
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen = set()
        for key, _value in node.value:
            if isinstance(key, yaml.ScalarNode):
                if (key.tag, key.value) in seen:
                    raise DoubledKey(key.value, key.start_mark.line + 1)
                seen.add((key.tag, key.value))
        return node
