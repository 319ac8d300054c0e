#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json/json.h"
#include "serving/output/answer_shape.h"

namespace valora::serving {
namespace {

using Corners = std::array<int64_t, 4>;  // x0, y0, x1, y1 in the model's units

constexpr int64_t kMostUnits = 1'000'000;  // numbers of models are cut there

// Log probabilities of the tokens of a label and of a box. A token counts for the first of the two
// that its text belongs to; what the notation demands around them counts for neither.
class Confidence {
 public:
  void begin_text(double logprob) { pending_ = logprob; }
  void in_label() {
    if (pending_) label_ += *std::exchange(pending_, std::nullopt);
  }
  void in_box() {
    if (!pending_) return;
    box_ += *std::exchange(pending_, std::nullopt);
    ++box_tokens_;
  }
  void begin_label() { label_ = 0; }
  void begin_box() { box_ = 0, box_tokens_ = 0; }
  double of_label() const { return std::exp(label_); }
  double of_box() const { return box_tokens_ > 0 ? std::exp(box_ / box_tokens_) : 1; }

 private:
  std::optional<double> pending_;  // of a text whose place is not known yet
  double label_ = 0, box_ = 0;
  int box_tokens_ = 0;
};

// The JSON of boxes in pixels.
class PixelBoxes {
 public:
  PixelBoxes(const BoxNotation& notation, const PictureSizes& sizes, const ShapeOutput& output)
      : sent_(sizes.sent),
        seen_(sizes.seen),
        output_(output),
        units_{notation.scale > 0 ? notation.scale : sizes.seen.width,
               notation.scale > 0 ? notation.scale : sizes.seen.height} {}

  // The text that continues the list; empty if the box has no area within the picture.
  std::string add(const Corners& corners, const std::string& label, const Confidence& confidence) {
    if (units_.width <= 0 || units_.height <= 0) return {};
    const auto [left, right] = across(corners[0], corners[2], units_.width, sent_.width);
    const auto [top, bottom] = across(corners[1], corners[3], units_.height, sent_.height);
    const bool clipped = std::max(corners[0], corners[2]) > units_.width ||
                         std::max(corners[1], corners[3]) > units_.height;
    if (left >= right || top >= bottom) return {};
    const std::string begin = any_ ? ", " : opening();
    any_ = true;
    return fmt::format("{}{{\"label\": {}, {}{}{}}}", begin, label, place(left, top, right, bottom),
                       probabilities(label, confidence), clipped ? ", \"clipped\": true" : "");
  }
  std::string finish() const { return (any_ ? "" : opening()) + "]" + (output_.sizes ? "}" : ""); }

 private:
  std::string opening() const {
    if (!output_.sizes) return "[";
    return fmt::format("{{\"size\": [{}, {}], \"seen\": [{}, {}], \"boxes\": [", sent_.width,
                       sent_.height, seen_.width, seen_.height);
  }
  std::string place(double left, double top, double right, double bottom) const {
    const auto four = [](const char* key, double a, double b, double c, double d) {
      return fmt::format("\"{}\": [{:.1f}, {:.1f}, {:.1f}, {:.1f}]", key, a, b, c, d);
    };
    switch (output_.boxes) {
      case ShapeOutput::Boxes::kBbox2d: return four("bbox_2d", left, top, right, bottom);
      case ShapeOutput::Boxes::kCoco: return four("bbox", left, top, right - left, bottom - top);
      case ShapeOutput::Boxes::kYolo:
        return fmt::format("\"xywhn\": [{:.6f}, {:.6f}, {:.6f}, {:.6f}]",
                           (left + right) / 2 / sent_.width, (top + bottom) / 2 / sent_.height,
                           (right - left) / sent_.width, (bottom - top) / sent_.height);
      case ShapeOutput::Boxes::kCorners: break;
    }
    return four("box", left, top, right, bottom);
  }
  std::string probabilities(const std::string& label, const Confidence& confidence) const {
    if (!output_.confidence) return {};
    std::string out = fmt::format(", \"confidence\": {:.4g}", confidence.of_box());
    if (label != "null")
      out += fmt::format(", \"label_confidence\": {:.4g}", confidence.of_label());
    return out;
  }
  // Two sides of a box in pixels, in order and within the picture.
  static std::pair<double, double> across(int64_t a, int64_t b, int units, int pixels) {
    const auto place = [&](int64_t at) {
      return static_cast<double>(std::min<int64_t>(at, units)) * pixels / units;
    };
    return {place(std::min(a, b)), place(std::max(a, b))};
  }

  PictureSize sent_, seen_;
  ShapeOutput output_;
  PictureSize units_;
  bool any_ = false;
};

std::string quoted_label(std::string_view text) {
  return Json(std::string(text)).dump(-1, ' ', false, Json::error_handler_t::replace);
}

// "<ref>car</ref><box>(12,30),(55,61)</box>" and its relatives, character by character, since other
// text may stand around it if no grammar holds the model to it.
class MarkedBoxes final : public AnswerShape {
 public:
  MarkedBoxes(const BoxNotation& notation, const PictureSizes& sizes, const ShapeOutput& output)
      : boxes_(notation, sizes, output), marked_(notation.labels) {}

  std::string push(const std::string& text, double logprob) override {
    std::string out;
    confidence_.begin_text(logprob);
    for (const char c : text) take(c, out);
    return out;
  }
  std::string finish() override { return boxes_.finish(); }

 private:
  void take(char c, std::string& out) {
    if (in_label_) return take_label(c);
    if (in_box_ && c >= '0' && c <= '9') {
      confidence_.in_box();
      number_ = std::min(number_.value_or(0) * 10 + (c - '0'), kMostUnits);
      return;
    }
    if (number_) numbers_.push_back(*number_);
    number_.reset();
    if (marked_)
      take_mark(c, out);
    else
      take_bracket(c, out);
  }

  void take_label(char c) {
    confidence_.in_label();
    label_text_ += c;
    for (const std::string_view end : {"</ref>", "<|object_ref_end|>"})
      if (label_text_.ends_with(end)) {
        label_ = quoted_label(label_text_.substr(0, label_text_.size() - end.size()));
        in_label_ = false;
      }
  }

  void take_mark(char c, std::string& out) {
    if (c == '<') mark_.clear();
    if (mark_.size() < kLongestMark) mark_ += c;
    if (c != '>') return;
    if (mark_ == "<ref>" || mark_ == "<|object_ref_start|>") {
      in_label_ = true;
      confidence_.begin_label();
      label_text_.clear();
    } else if (mark_ == "<box>" || mark_ == "<|box_start|>") {
      open();
    } else if (in_box_ && (mark_ == "</box>" || mark_ == "<|box_end|>")) {
      close(out);
    }
  }

  void take_bracket(char c, std::string& out) {
    if (c == '[') open();
    if (c == ']' && in_box_) close(out);
  }

  void open() {
    in_box_ = true;
    confidence_.begin_box();
    numbers_.clear();
  }

  void close(std::string& out) {
    in_box_ = false;
    for (size_t i = 0; i + 4 <= numbers_.size(); i += 4)
      out += boxes_.add({numbers_[i], numbers_[i + 1], numbers_[i + 2], numbers_[i + 3]}, label_,
                        confidence_);
  }

  static constexpr size_t kLongestMark = 32;

  PixelBoxes boxes_;
  Confidence confidence_;
  const bool marked_;
  bool in_label_ = false, in_box_ = false;
  std::string mark_, label_text_, label_ = "null";
  std::optional<int64_t> number_;
  std::vector<int64_t> numbers_;
};

// [{"bbox_2d": [12, 30, 55, 61], "label": "car"}] as box_grammar() allows it, object by object.
class JsonBoxes final : public AnswerShape {
 public:
  JsonBoxes(const BoxNotation& notation, const PictureSizes& sizes, const ShapeOutput& output)
      : boxes_(notation, sizes, output) {}

  std::string push(const std::string& text, double logprob) override {
    std::string out;
    confidence_.begin_text(logprob);
    for (const char c : text) take(c, out);
    return out;
  }
  std::string finish() override { return boxes_.finish(); }

 private:
  void take(char c, std::string& out) {
    if (object_.empty() && c != '{') return;
    if (object_.empty()) begin();
    object_ += c;
    if (c == '"' && !escaped_) {
      quoted_ = !quoted_;
      ++quotes_;
    } else if (quotes_ == kLabelBegins) {
      confidence_.in_label();
    } else if (!quoted_ && c >= '0' && c <= '9') {
      confidence_.in_box();
    }
    escaped_ = c == '\\' && !escaped_;
    if (c != '}' || quoted_) return;
    add(std::exchange(object_, {}), out);
  }

  void add(const std::string& text, std::string& out) {
    const auto object = parse_json(text, "the answer");
    if (!object.ok()) return;
    const Json& box = (*object)["bbox_2d"];
    Corners corners{};
    for (size_t i = 0; i < corners.size(); ++i)
      corners[i] = std::min(box[i].get<int64_t>(), kMostUnits);
    out += boxes_.add(corners, quoted_label((*object)["label"].get<std::string>()), confidence_);
  }

  void begin() {
    quotes_ = 0;
    confidence_.begin_label();
    confidence_.begin_box();
  }

  // The quotes of two keys, and the first of the label.
  static constexpr int kLabelBegins = 5;

  PixelBoxes boxes_;
  Confidence confidence_;
  int quotes_ = 0;
  std::string object_;
  bool quoted_ = false, escaped_ = false;
};

}  // namespace

std::unique_ptr<AnswerShape> box_shape(const BoxNotation& notation, const PictureSizes& sizes,
                                       const ShapeOutput& output) {
  if (notation.style == BoxStyle::kJson)
    return std::make_unique<JsonBoxes>(notation, sizes, output);
  return std::make_unique<MarkedBoxes>(notation, sizes, output);
}

}  // namespace valora::serving
