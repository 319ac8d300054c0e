// What the tensors of a GGUF file are in the checkpoint that it was made from.
#pragma once

#include <string>

#include "base/gguf.h"
#include "base/json.h"
#include "base/result.h"

namespace valora::models {

struct GgufSource {
  std::string name;       // in transformers; the file's own if it has no counterpart
  int64_t head_rows = 0;  // above 0: the halves of heads of so many rows are interleaved
  bool one_more = false;  // values are greater by one
};
// config: of gguf_config(). kUnprocessable if rows are not a multiple of heads.
Result<GgufSource> gguf_source(const Gguf& file, const GgufTensor& tensor, const Json& config);

}  // namespace valora::models
