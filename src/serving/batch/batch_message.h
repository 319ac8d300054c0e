// A step as data: what each rank of the model runs. It knows no tensor, no device and no mode: a
// mode is the weights in use and the adapters that rows differ from them by. Valid during its step:
// it points into the block tables and the adapters of the step's requests.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/digest.h"
#include "serving/adapters/loaded_adapter.h"
#include "serving/batch/flat_tokens.h"

namespace valora::serving {

// An adapter at a coefficient, on rows [begin, end).
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

// Rows of the step whose logits are wanted, each with the adapters of its request. The ranges of
// `adapters` count places in `rows`.
struct ScoredRows {
  std::vector<int64_t> rows;
  std::vector<AdapterRows> adapters;

  // One more row, for a request with these adapters.
  void add(int64_t row, std::span<const AppliedAdapter> uses);
};

struct BatchMessage {
  explicit BatchMessage(int axes) : tokens(axes) {}

  FlatTokens tokens;
  std::shared_ptr<const LoadedAdapter> merged;  // in the weights in use; null: none
  std::vector<AdapterRows> uses;                // the adapters of each row's request
  std::vector<AdapterRows> difference;          // of the uses on the decoder to the weights in use
  std::vector<VisualUse> visual;
  ScoredRows sampled;  // rows that may yield a token, in plan order: one per item and draft
};

}  // namespace valora::serving
