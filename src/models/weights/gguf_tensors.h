// Maps the tensors of GGUF files to those of the checkpoint they were converted from.
#pragma once

#include <string>
#include <vector>

#include "base/json/json.h"
#include "base/result.h"
#include "base/tensors/gguf.h"
#include "models/spec/gguf_model.h"

namespace valora::models {

// How the tensors of the file make up one of the checkpoint.
enum class GgufJoin : uint8_t {
  kRows,   // along the first dimension
  kFrames  // as a new third dimension: the kernels of a patch embedding over several frames
};

struct GgufSource {
  std::string name;       // as in transformers; the file's own name if there is no counterpart
  int64_t head_rows = 0;  // rows per head if the two halves of each head are interleaved; else 0
  bool one_more = false;  // the stored values are greater by one
  std::vector<const GgufTensor*> tensors{};  // one, or those that are joined; of equal type
  GgufJoin join = GgufJoin::kRows;
  std::vector<int64_t> shape{};  // of each tensor, if it is not the file's
};

// Of the language model, in the file's order. config: from gguf_config() or gguf_model_config().
// kUnprocessable if the rows are not a multiple of the heads.
Result<std::vector<GgufSource>> gguf_language_sources(const Gguf& file, const Json& config);
// Of the vision part (mmproj). config: from gguf_model_config(). kUnprocessable, naming the tensor,
// if one is missing or differs in type from those that it is joined with.
Result<std::vector<GgufSource>> gguf_vision_sources(const Gguf& file, const Json& config);

// Reads head_rows. kUnprocessable if the rows of the tensor are not a multiple of it.
Status set_head_rows(const Gguf& file, const GgufTensor& tensor, int64_t head_rows,
                     GgufSource& source);

}  // namespace valora::models
