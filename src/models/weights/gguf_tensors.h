// Maps the tensors of a GGUF file to those of the checkpoint it was converted from.
#pragma once

#include <string>

#include "base/json/json.h"
#include "base/result.h"
#include "base/tensors/gguf.h"

namespace valora::models {

struct GgufSource {
  std::string name;       // as in transformers; the file's own name if there is no counterpart
  int64_t head_rows = 0;  // rows per head if the two halves of each head are interleaved; else 0
  bool one_more = false;  // the stored values are greater by one
};
// config: from gguf_config(). kUnprocessable if the rows are not a multiple of the heads.
Result<GgufSource> gguf_source(const Gguf& file, const GgufTensor& tensor, const Json& config);

}  // namespace valora::models
