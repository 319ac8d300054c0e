"""Writes src/base/text/unicode_tables.cc: where the Unicode data of `tokenizers` differs from that of the libraries
we link.

`tokenizers` uses Unicode 16 for regular expressions and Unicode 9 for normalization; PCRE2 and utf8proc of the
supported systems use Unicode 14 and 15. All tables are probed from `tokenizers` itself, against the Unicode 14
data of Python 3.11. Run: python tests/parity/make_unicode_tables.py
"""

import pathlib
import unicodedata

from tokenizers import Regex, normalizers, pre_tokenizers

OUTPUT = pathlib.Path(__file__).parents[2] / "src/base/text/unicode_tables.cc"
CATEGORIES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cf".split()
CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
NFD = normalizers.NFD()
NFKD = normalizers.NFKD()
LOWERCASE = normalizers.Lowercase()


def code_points_of(category):
    split = pre_tokenizers.Split(Regex(r"\p{%s}" % category), "removed")
    return [c for c in CODE_POINTS if not split.pre_tokenize_str(chr(c))]


def ranges(items):
    """Converts ordered (code point, value) pairs to (first, last, value) runs."""
    runs = []
    for c, value in items:
        if runs and runs[-1][1] == c - 1 and runs[-1][2] == value:
            runs[-1][1] = c
        else:
            runs.append([c, c, value])
    return runs


def added_categories():
    return sorted((c, category) for category in CATEGORIES for c in code_points_of(category)
                  if unicodedata.category(chr(c)) == "Cn")


def reorders(c):
    """True if `tokenizers` gives c a combining class, so that it is reordered with some other
    mark."""
    x, low, high = chr(c), "\u0334", "\u0345"  # combining classes 1 and 240
    return any(NFD.normalize_str(s) != s for s in ("\u05d0" + x + low, "\u05d0" + high + x))


def composes(c):
    decomposition = unicodedata.decomposition(chr(c))
    if not decomposition or decomposition.startswith("<"):
        return True
    return NFD.normalize_str(chr(c)) == unicodedata.normalize("NFD", chr(c))


def keeps_compatible_form(c):
    """True if newer Unicode data decomposes the character but `tokenizers` does not."""
    return NFKD.normalize_str(chr(c)) == chr(c) != unicodedata.normalize("NFKD", chr(c))


def added_lower_cases():
    """(code point, distance to its lower case)"""
    lower = {c: LOWERCASE.normalize_str(chr(c)) for c in CODE_POINTS}
    return [(c, ord(text) - c) for c, text in lower.items() if text != chr(c).lower()]


def unknown_to_normalizer(added):
    marks = [c for c in CODE_POINTS if unicodedata.combining(chr(c)) and not reorders(c)]
    new = [c for c, category in added]
    composed = [c for c in CODE_POINTS if not composes(c)]
    parts = [ord(x) for c in composed for x in unicodedata.normalize("NFD", chr(c))]
    compatible = [c for c in CODE_POINTS if keeps_compatible_form(c)]
    return sorted(set(marks + new + composed + parts + compatible))


def table(rows, per_line):
    lines = [", ".join(rows[i:i + per_line]) for i in range(0, len(rows), per_line)]
    return ",\n".join("    " + line for line in lines)


def main():
    added = added_categories()
    categories = ['{0x%X, 0x%X, "%s"}' % tuple(r) for r in ranges(added)]
    lower = ["{0x%X, 0x%X, %d}" % tuple(r) for r in ranges(added_lower_cases())]
    unknown = ["{0x%X, 0x%X}" % (r[0], r[1]) for r in ranges([(c, 0) for c in unknown_to_normalizer(added)])]
    OUTPUT.write_text(f"""// Written by tests/parity/make_unicode_tables.py; do not edit.
#include "base/text/unicode_tables.h"

namespace valora {{

static constexpr std::array<CategoryRange, {len(categories)}> kAddedCategories = {{{{
{table(categories, 4)},
}}}};

static constexpr std::array<LowerCaseRange, {len(lower)}> kAddedLowerCases = {{{{
{table(lower, 5)},
}}}};

static constexpr std::array<CodePointRange, {len(unknown)}> kUnknownToNormalizer = {{{{
{table(unknown, 5)},
}}}};

std::span<const CategoryRange> added_categories() {{ return kAddedCategories; }}
std::span<const LowerCaseRange> added_lower_cases() {{ return kAddedLowerCases; }}
std::span<const CodePointRange> unknown_to_normalizer() {{ return kUnknownToNormalizer; }}

}}  // namespace valora
""")


if __name__ == "__main__":
    main()
