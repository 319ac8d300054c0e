// Unicode normalization form C, by the Unicode data that `tokenizers` has.
#pragma once

#include "text/normalizers/normalizer.h"

namespace valora::text {

class Nfc final : public Normalizer {
 public:
  std::string normalize(std::string_view utf8) const override;
};

}  // namespace valora::text
