// Differences between the Unicode data of `tokenizers` and that of PCRE2 and utf8proc. Ranges are
// sorted and disjoint.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

namespace valora {

struct CategoryRange {
  char32_t first;
  char32_t last;
  char category[3];
};

struct LowerCaseRange {
  char32_t first;
  char32_t last;
  int32_t offset;  // from a code point to its lower case
};

struct CodePointRange {
  char32_t first;
  char32_t last;
};

inline bool in_ranges(std::span<const CodePointRange> ranges, char32_t c) {
  const auto it = std::ranges::lower_bound(ranges, c, {}, &CodePointRange::last);
  return it != ranges.end() && it->first <= c;
}

// Code points assigned after Unicode 14, with their general category; the libraries may not know
// them.
std::span<const CategoryRange> added_categories();
// Lower-case mappings that the libraries may not know.
std::span<const LowerCaseRange> added_lower_cases();
// Code points that the reference, with Unicode 9 data, does not normalize, although newer data
// gives them a combining class or a decomposition.
std::span<const CodePointRange> unknown_to_normalizer();

}  // namespace valora
