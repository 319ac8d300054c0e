// "post_processor" of tokenizer.json: the ids added before and after a sequence.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "base/result.h"

namespace valora::text {

struct PostProcessor {
  std::vector<int32_t> prefix;
  std::vector<int32_t> suffix;

  // Ids must be in 0 … max_id. Null JSON adds nothing.
  static Result<PostProcessor> read(const Json& json, const std::string& where, int32_t max_id);
};

}  // namespace valora::text
