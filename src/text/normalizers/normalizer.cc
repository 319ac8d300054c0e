#include "text/normalizers/normalizer.h"

#include <algorithm>
#include <vector>

#include "base/text/unicode.h"
#include "text/json_fields.h"
#include "text/normalizers/unicode_form.h"
#include "text/replacement.h"
#include "text/row_reader.h"

namespace valora::text {
namespace {

// Normalizer "Strip": removes white space at the ends.
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

Result<std::unique_ptr<const Normalizer>> make_strip(const Json& json, const std::string& where) {
  VALORA_CHECK(check_fields(json, where, {"type", "strip_left", "strip_right"}));
  VALORA_TRY(left, field<bool>(json, where, "strip_left"));
  VALORA_TRY(right, field<bool>(json, where, "strip_right"));
  return std::unique_ptr<const Normalizer>(new Strip(left, right));
}

// Normalizer "Replace": replaces matches of a pattern by a text.
class Replace final : public Normalizer {
 public:
  explicit Replace(Replacement replacement) : replacement_(std::move(replacement)) {}
  void apply(NormalizedText& text) const override {
    text.text = replacement_.apply(text.text, text.head);
  }
  size_t max_growth() const override { return replacement_.max_growth(); }

 private:
  Replacement replacement_;
};

Result<std::unique_ptr<const Normalizer>> make_replace(const Json& json, const std::string& where) {
  VALORA_TRY(replacement, Replacement::read(json, where));
  return std::unique_ptr<const Normalizer>(new Replace(std::move(replacement)));
}

// Normalizer "Prepend": puts a text before every non-empty text.
constexpr size_t kMaxBytes = 1024;

class Prepend final : public Normalizer {
 public:
  explicit Prepend(std::string prefix) : prefix_(std::move(prefix)) {}
  void apply(NormalizedText& text) const override {
    if (text.text.empty()) return;
    text.text.insert(0, prefix_);
    if (text.head > 0) text.head += prefix_.size();
  }

 private:
  std::string prefix_;
};

Result<std::unique_ptr<const Normalizer>> make_prepend(const Json& json, const std::string& where) {
  VALORA_CHECK(check_fields(json, where, {"type", "prepend"}));
  VALORA_TRY(prefix, field<std::string>(json, where, "prepend"));
  if (prefix.size() > kMaxBytes)
    return refuse(where, "\"prepend\" is longer than " + std::to_string(kMaxBytes) + " bytes");
  return std::unique_ptr<const Normalizer>(new Prepend(std::move(prefix)));
}

// Normalizer "Lowercase": every character's full lower case, regardless of its neighbours.
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

Result<std::unique_ptr<const Normalizer>> make_lowercase(const Json& json,
                                                         const std::string& where) {
  VALORA_CHECK(check_fields(json, where, {"type"}));
  return std::unique_ptr<const Normalizer>(new Lowercase);
}

constexpr size_t kMaxNormalizerGrowth = 256;

using NormalizerPtr = std::unique_ptr<const Normalizer>;

class NormalizerSequence final : public Normalizer {
 public:
  explicit NormalizerSequence(std::vector<NormalizerPtr> parts) : parts_(std::move(parts)) {}
  void apply(NormalizedText& text) const override {
    for (const NormalizerPtr& part : parts_) part->apply(text);
  }

 private:
  std::vector<NormalizerPtr> parts_;
};

Result<NormalizerPtr> make_normalizer_part(const Json& json, const std::string& type,
                                           const std::string& where) {
  if (type == "NFC") return make_unicode_form(json, where, UnicodeForm::kNfc);
  if (type == "NFD") return make_unicode_form(json, where, UnicodeForm::kNfd);
  if (type == "NFKC") return make_unicode_form(json, where, UnicodeForm::kNfkc);
  if (type == "NFKD") return make_unicode_form(json, where, UnicodeForm::kNfkd);
  if (type == "Lowercase") return make_lowercase(json, where);
  if (type == "Prepend") return make_prepend(json, where);
  if (type == "Replace") return make_replace(json, where);
  if (type == "Strip") return make_strip(json, where);
  return refuse(where, "normalizer " + in_quotes(type) + " is not supported");
}

}  // namespace

Result<NormalizerPtr> make_normalizer(const Json& json, const std::string& where) {
  if (json.is_null()) return NormalizerPtr();
  VALORA_TRY(parts, RowReader<Normalizer>("normalizers", kMaxNormalizerGrowth, make_normalizer_part)
                        .read(json, where));
  return NormalizerPtr(new NormalizerSequence(std::move(parts)));
}

}  // namespace valora::text
