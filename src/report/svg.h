// SVG pictures, drawn from the bottom layer up. Coordinates are pixels from the top left corner;
// `css` is a list of classes (style.h); texts and titles are plain text and escaped here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace valora::report {

constexpr double kLetterWidth = 6.6;  // average width of a letter in the page's font
constexpr double kLabelHeight = 15;

// The vertical axis: `low` at the bottom, `high` at the top.
struct Scale {
  double low = 0, high = 1;
  double top = 0, height = 0;  // pixels
  double y(double value) const { return top + height * (1 - (value - low) / (high - low)); }
  double foot() const { return top + height; }
};

// Shapes of points: series with the same colour differ in their mark.
enum class Mark { kCircle, kSquare, kTriangle, kDiamond };
constexpr size_t kMarks = 4;

class Svg {
 public:
  // title: shown while the pointer is over the element.
  void line(std::string_view css, double x0, double y0, double x1, double y1,
            std::string_view title = {});
  void bar(std::string_view css, double left, double top, double width, double height,
           std::string_view title = {});
  void circle(std::string_view css, double x, double y, int radius);
  void mark(Mark mark, std::string_view css, double x, double y, std::string_view title);

  void text(std::string_view css, double x, double y, std::string_view text);
  // Centred at x; if slanted, ending below x.
  void column_label(std::string_view css, double x, double y, std::string_view text, bool slanted);
  // To the right of x: a series' name and value.
  void series_label(std::string_view css, double x, double y, std::string_view name,
                    std::string_view value);
  // A horizontal line with its label at the left end.
  void grid_line(double left, double right, double y, std::string_view label);

  // The <svg> element; `description` is for screen readers.
  std::string element(std::string_view description, double width, double height) const;

 private:
  std::string shapes_;
};

// Moves overlapping labels apart. y: the desired positions, ascending. The results are at least
// kLabelHeight apart and not below `foot`.
std::vector<double> spread_labels(std::vector<double> y, double foot);

}  // namespace valora::report
