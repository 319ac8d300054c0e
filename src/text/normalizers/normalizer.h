// "normalizer" of tokenizer.json.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/json/json.h"
#include "base/result.h"

namespace valora::text {

// Text being normalized. Its first `head` bytes come from the first character of the whole
// sequence, which some pre-tokenizers need; 0 if the text is not at the start.
struct NormalizedText {
  std::string text;
  size_t head = 0;
};

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void apply(NormalizedText& text) const = 0;  // the text must be valid UTF-8
  virtual size_t max_growth() const {
    return 1;
  }  // the largest factor by which the text can grow, plus a constant

  std::string normalize(std::string_view utf8) const {
    NormalizedText text{std::string(utf8)};
    apply(text);
    return std::move(text.text);
  }
};

// Null JSON yields a null pointer: text is left unchanged.
Result<std::unique_ptr<const Normalizer>> make_normalizer(const Json& json,
                                                          const std::string& where);

}  // namespace valora::text
