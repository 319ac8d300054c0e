#include "report/html.h"

#include <fmt/format.h>

#include "base/text/unicode.h"

namespace valora::report {
namespace {

// HTML cannot express them.
bool is_control(char c) {
  return (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7F;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : to_valid_utf8(text)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += is_control(c) ? "\uFFFD" : std::string(1, c);
    }
  }
  return out;
}

std::string page(std::string_view title, std::string_view css, std::string_view body_html) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n{}</body>\n</html>\n",
      escaped(title), css, body_html);
}

std::string tiles(std::span<const Tile> tiles) {
  std::string out = "<div class=\"tiles\">\n";
  for (const Tile& tile : tiles)
    out += fmt::format("<div class=\"tile\"><b>{}</b><span>{}</span></div>\n", escaped(tile.value),
                       escaped(tile.label));
  return out + "</div>\n";
}

std::string table(std::span<const Column> columns, std::string_view rows_html) {
  std::string head;
  for (const Column& column : columns)
    head += fmt::format("<th scope=\"col\"{}>{}</th>", column.is_number ? " class=\"n\"" : "",
                        column.title_html);
  return fmt::format(
      "<div "
      "class=\"scroll\"><table>\n<thead><tr>{}</tr></thead>\n<tbody>\n{}</tbody></table></div>\n",
      head, rows_html);
}

std::string cell(std::string_view html, std::string_view css_class) {
  return css_class.empty() ? fmt::format("<td>{}</td>", html)
                           : fmt::format("<td class=\"{}\">{}</td>", css_class, html);
}

std::string number_cell(std::string_view text) { return cell(escaped(text), "n"); }

std::string row_name(std::string_view html) {
  return fmt::format("<th scope=\"row\">{}</th>", html);
}

std::string folded(std::string_view summary, std::string_view text) {
  return fmt::format("<details><summary>{}</summary>\n<pre>{}</pre></details>\n", escaped(summary),
                     escaped(text));
}

std::string figure(std::string_view name, std::string_view remark, std::string_view svg_html) {
  return fmt::format(
      "<figure><figcaption><b>{}</b> {}</figcaption>\n<div class=\"scroll\">{}</div></figure>\n",
      escaped(name), escaped(remark), svg_html);
}

}  // namespace valora::report
