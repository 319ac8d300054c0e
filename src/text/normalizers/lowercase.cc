#include "text/normalizers/lowercase.h"

#include "base/text/unicode.h"
#include "text/json_fields.h"

namespace valora::text {
namespace {

class Lowercase final : public Normalizer {
 public:
  void apply(NormalizedText& text) const override {
    std::string out;
    out.reserve(text.text.size());
    size_t head = 0;
    for (size_t at = 0; at < text.text.size();) {
      const Utf8Step step = decode_utf8(std::string_view(text.text).substr(at));
      append_lowercase(out, step.code_point);
      if (at < text.head) head = out.size();
      at += step.length;
    }
    text = {std::move(out), head};
  }
  size_t max_growth() const override { return 2; }

 private:
  static void append_lowercase(std::string& out, char32_t c) {
    constexpr char32_t kCapitalIWithDot =
        0x130;  // the only character whose lower case has two characters
    if (c == kCapitalIWithDot)
      out += "i\u0307";
    else
      append_utf8(out, to_lower(c));
  }
};

}  // namespace

Result<std::unique_ptr<const Normalizer>> make_lowercase(const Json& json,
                                                         const std::string& where) {
  VALORA_CHECK(check_fields(json, where, {"type"}));
  return std::unique_ptr<const Normalizer>(new Lowercase);
}

}  // namespace valora::text
