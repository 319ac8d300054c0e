// CSS for pages and their pictures, in light and dark mode.
#pragma once

#include <cstddef>
#include <string>

namespace valora::report {

// Colours as variables (--text, --quiet, --good, --bad …), text, tiles (.tiles, .tile) and tables
// (.n: numbers, .wide: long text).
extern const char* const kPageStyle;
// For pages with pictures, to follow kPageStyle: .dot, .good, .bad, figures in .panels, and within
// SVG .axis, .step, .name, .value, .struck, .verdict, .grid and .undone (a band).
extern const char* const kChartStyle;

// A series' colour: classes "c0" to "c7" set the CSS variable --c.
constexpr size_t kColours = 8;
inline std::string colour_class(size_t series) { return "c" + std::to_string(series % kColours); }

}  // namespace valora::report
