// A step as plain data, for each rank of the model to run. Independent of tensors, devices and
// modes: a mode is expressed by the weights in use and the adapters by which rows differ from them.
// Valid during its step only, because it points into block tables and adapters of the step's
// requests.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/digest.h"
#include "serving/adapters/loaded_adapter.h"
#include "serving/batch/flat_tokens.h"

namespace valora::serving {

// An adapter applied with a coefficient to rows [begin, end).
struct AdapterRows {
  int64_t begin = 0, end = 0;
  const LoadedAdapter* adapter = nullptr;
  float coefficient = 1;
  bool operator==(const AdapterRows&) const = default;
};

// Tokens [token, token + rows) take these rows of a visual input's embeddings.
struct VisualUse {
  int64_t token = 0;
  Digest key;  // visual_key()
  int64_t first_row = 0, rows = 0;
};

// Rows of the step whose logits are computed, each with its request's adapters. Ranges in
// `adapters` are indices into `rows`.
struct ScoredRows {
  std::vector<int64_t> rows;
  std::vector<AdapterRows> adapters;

  // Adds a row of a request with these adapters.
  void add(int64_t row, std::span<const AppliedAdapter> uses);
};

struct BatchMessage {
  explicit BatchMessage(int axes) : tokens(axes) {}

  FlatTokens tokens;
  std::shared_ptr<const LoadedAdapter> merged;  // merged into the weights in use; null: none
  std::vector<AdapterRows> uses;                // the adapters of each row's request
  std::vector<AdapterRows> difference;  // between `uses` on the decoder and the weights in use
  std::vector<VisualUse> visual;
  ScoredRows sampled;  // rows that may yield a token, in plan order: one per item and draft
};

}  // namespace valora::serving
