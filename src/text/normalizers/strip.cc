#include "text/normalizers/strip.h"

#include <algorithm>

#include "base/text/unicode.h"
#include "text/json_fields.h"

namespace valora::text {
namespace {

class Strip final : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}

  void apply(NormalizedText& text) const override {
    if (right_) text.text.resize(trailing_white_space(text.text, 0));
    if (left_) {
      const size_t cut = leading_white_space(text.text);
      text.text.erase(0, cut);
      text.head -= std::min(text.head, cut);
    }
    text.head = std::min(text.head, text.text.size());
  }

 private:
  bool left_;
  bool right_;
};

}  // namespace

Result<std::unique_ptr<const Normalizer>> make_strip(const Json& json, const std::string& where) {
  VALORA_CHECK(check_fields(json, where, {"type", "strip_left", "strip_right"}));
  VALORA_TRY(left, field<bool>(json, where, "strip_left"));
  VALORA_TRY(right, field<bool>(json, where, "strip_right"));
  return std::unique_ptr<const Normalizer>(new Strip(left, right));
}

}  // namespace valora::text
