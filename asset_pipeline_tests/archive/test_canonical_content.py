"""A manifest's content has one form, whichever way it was written: its digest is compared over years and machines."""

from __future__ import annotations

import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st

from asset_pipeline.archive.content import canonical_bytes

numbers = st.one_of(
    st.integers(-(2**53) + 1, 2**53 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-1000, 1000).map(lambda value: round(value, 3)),
    st.sampled_from([0.0, -0.0, 1.0, 1e-4, 9.9e-5, 1e-7, 1e15, 1e16, 123456789012345680.0, 2.0**53, 5e-324]),
)
values = st.recursive(
    st.one_of(numbers, st.text(), st.booleans(), st.none()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


@given(values)
@example(2.0**53)
@example({"\U00010000": 1, "\uffff": 2})
def test_the_fast_form_and_the_standard_one_are_the_same_bytes(value: object) -> None:
    assert canonical_bytes(value) == rfc8785.dumps(value)
