// Unicode normalization with the same Unicode data as `tokenizers`.
#pragma once

#include "text/normalizers/normalizer.h"

namespace valora::text {

enum class UnicodeForm : uint8_t { kNfc, kNfd, kNfkc, kNfkd };

class UnicodeNormalizer final : public Normalizer {
 public:
  explicit UnicodeNormalizer(UnicodeForm form) : form_(form) {}
  void apply(NormalizedText& text) const override;
  size_t max_growth() const override;

 private:
  std::string normal_form(std::string_view utf8) const;
  UnicodeForm form_;
};

Result<std::unique_ptr<const Normalizer>> make_unicode_form(const Json& json,
                                                            const std::string& where,
                                                            UnicodeForm form);

}  // namespace valora::text
