#include "report/svg.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/html.h"

namespace valora::report {
namespace {

// The end of an element, which is empty or contains a title.
std::string end_of(const char* element, std::string_view title) {
  return title.empty() ? "/>\n" : fmt::format("><title>{}</title></{}>\n", escaped(title), element);
}

const char* path_of(Mark mark) {
  switch (mark) {
    case Mark::kCircle: return "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0z";
    case Mark::kSquare: return "M-3.6,-3.6h7.2v7.2h-7.2z";
    case Mark::kTriangle: return "M0,-4.6L4.4,3.4H-4.4z";
    case Mark::kDiamond: return "M0,-5L5,0L0,5L-5,0z";
  }
  return "";
}

}  // namespace

void Svg::line(std::string_view css, double x0, double y0, double x1, double y1,
               std::string_view title) {
  shapes_ +=
      fmt::format("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"{}",
                  css, x0, y0, x1, y1, end_of("line", title));
}

void Svg::bar(std::string_view css, double left, double top, double width, double height,
              std::string_view title) {
  shapes_ += fmt::format(
      "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"{}", css,
      left, top, width, height, end_of("rect", title));
}

void Svg::circle(std::string_view css, double x, double y, int radius) {
  shapes_ += fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"/>\n", css, x, y,
                         radius);
}

void Svg::mark(Mark mark, std::string_view css, double x, double y, std::string_view title) {
  shapes_ += fmt::format("<path class=\"{}\" d=\"{}\" transform=\"translate({:.1f},{:.1f})\"{}",
                         css, path_of(mark), x, y, end_of("path", title));
}

void Svg::text(std::string_view css, double x, double y, std::string_view text) {
  shapes_ += fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", css, x, y,
                         escaped(text));
}

void Svg::column_label(std::string_view css, double x, double y, std::string_view text,
                       bool slanted) {
  const std::string place =
      slanted ? fmt::format(
                    "text-anchor=\"end\" transform=\"translate({:.1f},{:.1f}) rotate(-37)\"", x, y)
              : fmt::format("text-anchor=\"middle\" x=\"{:.1f}\" y=\"{:.1f}\"", x, y);
  shapes_ += fmt::format("<text class=\"{}\" {}>{}</text>\n", css, place, escaped(text));
}

void Svg::series_label(std::string_view css, double x, double y, std::string_view name,
                       std::string_view value) {
  shapes_ += fmt::format(
      "<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\">{} <tspan class=\"value\">{}</tspan></text>\n",
      css, x, y, escaped(name), escaped(value));
}

void Svg::grid_line(double left, double right, double y, std::string_view label) {
  line("grid", left, y, right, y);
  text("axis", left - 6, y + 4, label);
}

std::string Svg::element(std::string_view description, double width, double height) const {
  return fmt::format(
      "<svg role=\"img\" aria-label=\"{}\" width=\"{:.0f}\" height=\"{:.0f}\" "
      "viewBox=\"0 0 {:.0f} {:.0f}\">\n{}</svg>\n",
      escaped(description), width, height, width, height, shapes_);
}

std::vector<double> spread_labels(std::vector<double> y, double foot) {
  double above = -kLabelHeight;
  for (double& each : y) above = each = std::max(each, above + kLabelHeight);
  for (size_t i = y.size(); i-- > 0; foot = y[i] - kLabelHeight) y[i] = std::min(y[i], foot);
  return y;
}

}  // namespace valora::report
