// CSS of pages and their pictures, for light and dark screens.
#pragma once

#include <cstddef>
#include <string>

namespace valora::report {

// Colours as variables (--text, --quiet, --good, --bad …), text, tiles (.tiles, .tile) and tables
// (.n: numbers, .wide: long text).
extern const char* const kPageStyle;
// Follows kPageStyle on a page with pictures: .dot, .good, .bad, figures in .panels, and within an
// SVG .axis, .step, .name, .value, .struck, .verdict, .grid and .undone (a band).
extern const char* const kChartStyle;

// A series' colour: the CSS variable --c under the class "c0" to "c7".
constexpr size_t kColours = 8;
inline std::string colour_class(size_t series) { return "c" + std::to_string(series % kColours); }

}  // namespace valora::report
