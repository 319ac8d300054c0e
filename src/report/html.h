// Parts of a self-contained HTML page. Parameters named `html` are inserted as they are; all others
// are plain text and escaped here.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace valora::report {

// Escapes for HTML text and double-quoted attributes. Invalid UTF-8 and control characters become
// U+FFFD.
std::string escaped(std::string_view text);

// A complete document. `css`: usually kPageStyle (style.h) followed by the page's own rules.
std::string page(std::string_view title, std::string_view css, std::string_view body_html);

// A headline figure and its label.
struct Tile {
  std::string value, label;
};
std::string tiles(std::span<const Tile> tiles);

struct Column {
  const char* title_html;
  bool is_number = false;  // aligned to the right
};
// rows_html: <tr> elements made of the cells below. Wide tables scroll.
std::string table(std::span<const Column> columns, std::string_view rows_html);
std::string cell(std::string_view html, std::string_view css_class = {});
std::string number_cell(std::string_view text);
std::string row_name(std::string_view html);  // the cell that names a row

// Preformatted text that expands from its summary.
std::string folded(std::string_view summary, std::string_view text);

// A picture (svg.h) with a caption made of a name and a remark.
std::string figure(std::string_view name, std::string_view remark, std::string_view svg_html);

}  // namespace valora::report
