"""Writes src/jinja/values/casing_table.cc: case properties of Python's str that do not follow from simple case mappings
and categories.

Usage: python tests/parity/make_casing_table.py > src/jinja/values/casing_table.cc
"""

import unicodedata


def entries(convert):
    found = [c for c in map(chr, range(0x110000)) if len(convert(c)) > 1]
    for c in found:
        yield '    {0x%04X, "%s"},' % (ord(c), "".join("\\x%02X" % b for b in convert(c).encode()))


def ranges(wanted):
    """Runs of code points, formatted as "{first, last}"."""
    found = [c for c in range(0x110000) if wanted(chr(c))]
    runs = []
    for c in found:
        if runs and runs[-1][1] == c - 1:
            runs[-1][1] = c
        else:
            runs.append([c, c])
    return ["    {0x%04X, 0x%04X}," % tuple(run) for run in runs]


# Characters for which the str method and the category disagree.
OTHERS = [("Upper", lambda c: c.isupper() and unicodedata.category(c) != "Lu"),
          ("Lower", lambda c: c.islower() and unicodedata.category(c) != "Ll"),
          ("Digit", lambda c: c.isdigit() and unicodedata.category(c) != "Nd"),
          ("Numeric", lambda c: c.isnumeric() and unicodedata.category(c)[0] != "N")]


def main():
    print("// Written by tests/parity/make_casing_table.py.")
    print('#include "jinja/values/casing_table.h"\n')
    print("namespace valora::jinja {\n")
    for name, convert in [("Upper", str.upper), ("Title", str.title)]:
        lines = list(entries(convert))
        print(f"const std::array<LongCase, {len(lines)}> kLong{name} = {{{{")
        print("\n".join(lines))
        print("}};\n")
    for name, wanted in OTHERS:
        lines = ranges(wanted)
        print(f"const std::array<CodePointRange, {len(lines)}> kOther{name} = {{{{")
        print("\n".join(lines))
        print("}};\n")
    print("}  // namespace valora::jinja")


if __name__ == "__main__":
    main()
