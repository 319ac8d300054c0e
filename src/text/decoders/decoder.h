// "decoder" of tokenizer.json: what a token's text stands for.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace valora::text {

class Decoder {
 public:
  virtual ~Decoder() = default;
  // The bytes of one token in running text; a character's bytes may be spread over several tokens.
  virtual std::string bytes(std::string_view token) const = 0;
};

Result<std::unique_ptr<const Decoder>> make_decoder(const Json& json, const std::string& where);

}  // namespace valora::text
