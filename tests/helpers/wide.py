"""How much of a wide comparison to run: a sample in `make test`, everything in `make conformance`
(VALORA_CONFORMANCE=full).

Samples are always the same and include each value of each parameter.
"""

import itertools
import os

EVERYTHING = os.environ.get("VALORA_CONFORMANCE") == "full"


def sample(cases, count):
    """`count` of the cases, evenly spaced from first to last."""
    cases = list(cases)
    if EVERYTHING or count >= len(cases):
        return cases
    return [cases[i * (len(cases) - 1) // (count - 1)] for i in range(count)]


def pairs(first, second):
    """All combinations of two parameters, or just enough to include each value of each."""
    first, second = list(first), list(second)
    if EVERYTHING:
        return list(itertools.product(first, second))
    return [(first[i % len(first)], second[i % len(second)]) for i in range(max(len(first), len(second)))]
