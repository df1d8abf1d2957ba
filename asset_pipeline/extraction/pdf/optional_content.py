"""Layers: whether optional content is visible when a document is opened (PDF 8.11).

The default configuration decides: base state, ON, OFF, and what it says about viewing. Membership
dictionaries follow their policy or visibility expression. Anything unsound is visible, as viewers do:
a picture wrongly called hidden would be lost to the reader.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pikepdf

from asset_pipeline.extraction.pdf.resources import Key, entry, is_name, key_of

_EXPRESSION_PARTS = 200


class Layers:
    """The layers of one document as its default configuration shows them. Read at first question."""

    def __init__(self, pdf: pikepdf.Pdf) -> None:
        self._pdf = pdf
        self._states: tuple[bool, dict[Key, bool]] | None = None
        self._answers: dict[Key, bool] = {}

    def shows(self, content: Any) -> bool:
        """Whether content marked with ``content`` (a group, a membership dictionary, or nothing) is visible."""
        if not isinstance(content, pikepdf.Dictionary):
            return True
        key = key_of(content)
        if key is None:
            return self._decide(content)
        if key not in self._answers:
            self._answers[key] = self._decide(content)
        return self._answers[key]

    def _decide(self, content: pikepdf.Dictionary) -> bool:
        if not is_name(content.get("/Type"), "/OCMD"):
            return self._group(content)
        expression = content.get("/VE")
        if isinstance(expression, pikepdf.Array):
            return self._expression(expression, iter(range(_EXPRESSION_PARTS)))
        members = content.get("/OCGs")
        listed = list(members) if isinstance(members, pikepdf.Array) else [members]
        states = [self._group(member) for member in listed if isinstance(member, pikepdf.Dictionary)]
        policy = content.get("/P")
        if not states:
            return True
        if is_name(policy, "/AllOn"):
            return all(states)
        if is_name(policy, "/AllOff"):
            return not any(states)
        return not all(states) if is_name(policy, "/AnyOff") else any(states)

    def _expression(self, expression: Any, parts: Iterator[int]) -> bool:
        """``parts`` runs out on an expression that contains itself; depth is bounded along with it."""
        if isinstance(expression, pikepdf.Dictionary):
            return self._group(expression)
        if not isinstance(expression, pikepdf.Array) or len(expression) < 2 or next(parts, None) is None:
            return True
        operator, *operands = list(expression)
        if is_name(operator, "/Not"):
            return not self._expression(operands[0], parts)
        every = all if is_name(operator, "/And") else any
        return every(self._expression(operand, parts) for operand in operands)

    def _group(self, group: pikepdf.Dictionary) -> bool:
        if not _meant_for_view(group.get("/Intent")):
            return True
        if self._states is None:
            self._states = _read_states(self._pdf)
        base, states = self._states
        key = key_of(group)
        return base if key is None else states.get(key, base)


def _meant_for_view(intent: Any) -> bool:
    if isinstance(intent, pikepdf.Array):
        return any(is_name(part, "/View", "/All") for part in intent) if len(intent) else True
    return not isinstance(intent, pikepdf.Name) or is_name(intent, "/View", "/All")


def _read_states(pdf: pikepdf.Pdf) -> tuple[bool, dict[Key, bool]]:
    default = entry(entry(pdf.Root, "/OCProperties"), "/D")
    states: dict[Key, bool] = {}
    for name, state in (("/ON", True), ("/OFF", False)):
        for group in _groups(entry(default, name)):
            states[group] = state
    for usage in _items(entry(default, "/AS")):
        if is_name(entry(usage, "/Event"), "/View") and any(
            is_name(category, "/View") for category in _items(entry(usage, "/Category"))
        ):
            for group in _items(entry(usage, "/OCGs")):
                _apply_usage(group, states)
    return not is_name(entry(default, "/BaseState"), "/OFF"), states


def _apply_usage(group: Any, states: dict[Key, bool]) -> None:
    wish = entry(entry(entry(group, "/Usage"), "/View"), "/ViewState")
    if is_name(wish, "/ON", "/OFF") and (key := key_of(group)) is not None:
        states[key] = is_name(wish, "/ON")


def _items(value: Any) -> list[Any]:
    return list(value) if isinstance(value, pikepdf.Array) else []


def _groups(value: Any) -> list[Key]:
    keys = [key_of(group) for group in _items(value) if isinstance(group, pikepdf.Dictionary)]
    return [key for key in keys if key is not None]
