// "normalizer" of tokenizer.json.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace valora::text {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual std::string normalize(std::string_view utf8) const = 0;  // utf8 must be valid
};

// Null JSON gives a null pointer: the text stays as it is.
Result<std::unique_ptr<const Normalizer>> make_normalizer(const Json& json, const std::string& where);

}  // namespace valora::text
