#include "generator/data/box_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/fault.h"
#include "base/json/json.h"

namespace valora::generator {
namespace {

constexpr std::string_view kRef = "<ref>", kRefEnd = "</ref>";
constexpr std::string_view kBox = "<box>", kBoxEnd = "</box>";

// One side of a box in units, at least one unit long.
std::pair<int, int> units(double low, double high, int scale) {
  const auto rounded = [scale](double share) {
    return static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * scale));
  };
  int from = rounded(low), to = rounded(high);
  // Use the unit that contains the lower end, and end one unit after it.
  if (from >= to) {
    from = std::min(static_cast<int>(std::clamp(low, 0.0, 1.0) * scale), scale - 1);
    to = from + 1;
  }
  return {from, to};
}

std::array<int, 4> units(const Box& box, int scale) {
  const auto [x0, x1] = units(box.x0, box.x1, scale);
  const auto [y0, y1] = units(box.y0, box.y1, scale);
  return {x0, y0, x1, y1};
}

// Reads an answer from left to right. Text that does not match is not consumed.
class BoxReader {
 public:
  explicit BoxReader(std::string_view text) : rest_(text) {}
  bool at_end() const { return rest_.empty(); }
  void skip() { rest_.remove_prefix(1); }

  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  // Reads the label after "<ref>": up to "</ref>", or to the next tag if that is missing.
  std::string label() {
    const size_t end = std::min(rest_.find('<'), rest_.size());
    const size_t closed = rest_.find(kRefEnd);
    // A label may contain "<", but not "<ref>".
    const bool is_closed = closed != rest_.npos &&
                           rest_.substr(0, closed).find(kRef) == rest_.npos &&
                           rest_.substr(0, closed).find(kBox) == rest_.npos;
    std::string text(rest_.substr(0, is_closed ? closed : end));
    rest_.remove_prefix(is_closed ? closed + kRefEnd.size() : end);
    return text;
  }

  // True if the answer ends inside the "</box>" that must follow here.
  bool is_cut() {
    space();
    return kBoxEnd.substr(0, kBoxEnd.size() - 1).starts_with(rest_);
  }

  // "[x0,y0,x1,y1]" or "(x0,y0),(x1,y1)". White space and a missing comma between the corners are
  // accepted.
  std::optional<std::array<double, 4>> box() {
    const std::string_view before = rest_;
    std::array<double, 4> numbers;
    const bool fits = take("[") ? square(numbers) : take("(") && round(numbers);
    if (fits) return numbers;
    rest_ = before;
    return {};
  }

 private:
  void space() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n' || rest_[0] == '\t'))
      rest_.remove_prefix(1);
  }
  bool mark(std::string_view character) {
    space();
    return take(character);
  }
  bool number(double& value) {
    space();
    const char* const begin = rest_.data();
    const auto [stop, fault] =
        std::from_chars(begin, begin + rest_.size(), value, std::chars_format::fixed);
    if (fault != std::errc() || !std::isfinite(value)) return false;
    rest_.remove_prefix(static_cast<size_t>(stop - begin));
    return true;
  }
  bool square(std::array<double, 4>& v) {
    return number(v[0]) && mark(",") && number(v[1]) && mark(",") && number(v[2]) && mark(",") &&
           number(v[3]) && mark("]");
  }
  bool round(std::array<double, 4>& v) {
    if (!number(v[0]) || !mark(",") || !number(v[1]) || !mark(")")) return false;
    mark(",");
    return mark("(") && number(v[2]) && mark(",") && number(v[3]) && mark(")");
  }

  std::string_view rest_;
};

}  // namespace

std::string write_boxes(const std::vector<LabelledBox>& boxes, const BoxFormat& format) {
  std::string text;
  if (!format.labels) {
    for (const LabelledBox& box : boxes)
      text += fmt::format("[{}]", fmt::join(units(box.box, format.scale), ","));
    return text;
  }
  std::vector<bool> written(boxes.size());
  for (size_t i = 0; i < boxes.size(); ++i) {
    if (written[i]) continue;
    if (!boxes[i].label.empty()) text += fmt::format("<ref>{}</ref>", boxes[i].label);
    for (size_t j = i; j < boxes.size(); ++j) {
      if (written[j] || boxes[j].label != boxes[i].label) continue;
      const auto [x0, y0, x1, y1] = units(boxes[j].box, format.scale);
      text += fmt::format("<box>({},{}),({},{})</box>", x0, y0, x1, y1);
      written[j] = true;
    }
  }
  return text;
}

std::vector<LabelledBox> read_boxes(const std::string& answer, const BoxFormat& format) {
  std::vector<LabelledBox> boxes;
  std::string label;
  BoxReader reader(answer);
  bool tagged = false;  // the next box follows "<box>"
  while (!reader.at_end()) {
    if (reader.take(kRef)) {
      label = reader.label();
    } else if (reader.take(kBox)) {
      tagged = true;
    } else if (const auto numbers = reader.box()) {
      if (tagged && reader.is_cut()) break;
      tagged = false;
      const auto share = [&](int i) { return std::clamp((*numbers)[i] / format.scale, 0.0, 1.0); };
      const Box box{std::min(share(0), share(2)), std::min(share(1), share(3)),
                    std::max(share(0), share(2)), std::max(share(1), share(3))};
      if (box.x0 < box.x1 && box.y0 < box.y1) boxes.push_back({label, box});
    } else {
      reader.skip();
    }
  }
  return boxes;
}

Result<std::vector<LabelledBox>> read_box_answer(const std::string& answer) {
  VALORA_TRY(json, parse_json(answer, "the answer"));
  try {
    const double width = json.at("size").at(0), height = json.at("size").at(1);
    std::vector<LabelledBox> boxes;
    for (const Json& box : json.at("boxes")) {
      const Json &label = box.at("label"), &corners = box.at("box");
      boxes.push_back(
          {label.is_string() ? label.get<std::string>() : std::string(),
           {corners.at(0).get<double>() / width, corners.at(1).get<double>() / height,
            corners.at(2).get<double>() / width, corners.at(3).get<double>() / height}});
    }
    return boxes;
  } catch (const Json::exception& e) {
    return fault("the answer is no list of boxes", e);
  }
}

double overlap(const Box& a, const Box& b) {
  const double width = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
  const double height = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
  if (width <= 0 || height <= 0) return 0;
  const auto area = [](const Box& box) { return (box.x1 - box.x0) * (box.y1 - box.y0); };
  const double both = width * height;
  return both / (area(a) + area(b) - both);
}

}  // namespace valora::generator
