"""Medians and percentiles as people read them."""

from __future__ import annotations

import pytest

from asset_pipeline.ledger.measures import Spread, spread


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([7.4], Spread(1, 7, 7)),
        ([3, 1, 2], Spread(3, 2, 3)),
        (range(1, 101), Spread(100, 50, 95)),
        (range(1, 21), Spread(20, 10, 19)),
    ],
)
def test_median_and_95th_percentile_are_values_that_occurred(values: list[float], expected: Spread) -> None:
    assert spread(values) == expected
