#include "text/normalizers/normalizer.h"

#include <vector>

#include "text/normalizers/lowercase.h"
#include "text/normalizers/prepend.h"
#include "text/normalizers/replace.h"
#include "text/normalizers/strip.h"
#include "text/normalizers/unicode_form.h"
#include "text/row_reader.h"

namespace valora::text {
namespace {

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
