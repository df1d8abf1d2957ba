"""The measures as Prometheus reads them: text exposition format 0.0.4, all gauges, for a textfile collector.

A measure without a value is left out. Names are ``asset_pipeline_<measure>[_<unit>]``; limits are gauges of their own,
so that an alerting rule needs no number of its own; ``asset_pipeline_breach`` is 1 where a limit is not kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from asset_pipeline.history.measures import Measure

_UNITS = {"seconds": "_seconds", "bytes": "_bytes", "ratio": "", "count": ""}

Sample = tuple[Mapping[str, str], float]


def exposition(measures: Sequence[Measure]) -> str:
    """The whole answer, ending with a line feed."""
    families: dict[str, tuple[str, list[Sample]]] = {}
    for measure in measures:
        if measure.value is None:
            continue
        name = _name(measure)
        families.setdefault(name, (measure.meaning, []))[1].append((measure.labels, measure.value))
        if measure.limit is not None:
            told = f"limit of {name}"
            families.setdefault(f"{name}_limit", (told, []))[1].append((measure.labels, measure.limit))
            kind = {"of": measure.name, "class": measure.kind, **measure.labels}
            broken = families.setdefault("asset_pipeline_breach", ("1 where a limit is not kept", []))
            broken[1].append((kind, float(bool(measure.breach))))
    return "".join(line for name, family in families.items() for line in _family(name, *family))


def _name(measure: Measure) -> str:
    suffix = _UNITS[measure.unit]
    return f"asset_pipeline_{measure.name}{'' if measure.name.endswith(suffix) else suffix}"


def _family(name: str, meaning: str, samples: Sequence[Sample]) -> Iterator[str]:
    yield f"# HELP {name} {_escaped(meaning)}\n"
    yield f"# TYPE {name} gauge\n"
    for labels, value in samples:
        written = ",".join(f'{label}="{_quoted(text)}"' for label, text in labels.items())
        yield f"{name}{{{written}}} {value!r}\n" if written else f"{name} {value!r}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', r"\"")
