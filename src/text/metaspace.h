// "Metaspace" of tokenizer.json, a pre-tokenizer and a decoder: represents spaces by a visible
// character.
#pragma once

#include <string>

#include "base/json/json.h"
#include "base/result.h"

namespace valora::text {

enum class PrependScheme : uint8_t { kAlways, kFirst, kNever };

struct Metaspace {
  std::string replacement;  // one character, UTF-8
  PrependScheme scheme = PrependScheme::kAlways;
  bool split = true;

  // Older files have "add_prefix_space", and "str_rep", which is ignored.
  static Result<Metaspace> read(const Json& json, const std::string& where);
};

}  // namespace valora::text
