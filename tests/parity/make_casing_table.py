"""Writes src/text/jinja/casing_table.cc: the characters whose upper or title case is several characters.

Usage: python tests/parity/make_casing_table.py > src/text/jinja/casing_table.cc
"""


def entries(convert):
    found = [c for c in map(chr, range(0x110000)) if len(convert(c)) > 1]
    for c in found:
        yield '    {0x%04X, "%s"},' % (ord(c), "".join("\\x%02X" % b for b in convert(c).encode()))


def main():
    print("// Written by tests/parity/make_casing_table.py.")
    print('#include "text/jinja/casing_table.h"\n')
    print("namespace valora::text::jinja {\n")
    for name, convert in [("Upper", str.upper), ("Title", str.title)]:
        lines = list(entries(convert))
        print(f"const std::array<LongCase, {len(lines)}> kLong{name} = {{{{")
        print("\n".join(lines))
        print("}};\n")
    print("}  // namespace valora::text::jinja")


if __name__ == "__main__":
    main()
