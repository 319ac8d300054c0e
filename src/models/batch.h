// The flat batch of one step: T tokens of S sequences, one sequence after the other.
#pragma once

#include <ATen/ATen.h>

#include <span>
#include <vector>

#include "media/processors/processor.h"
#include "ops/attention/attention.h"
#include "ops/delta/state_arena.h"
#include "ops/lora/lora.h"
#include "ops/step/span_tables.h"
#include "ops/vocabulary/vocabulary.h"

namespace valora::models {

// Merged weights by module index. A defined entry replaces the base model's weight (its bias
// stays); an undefined one keeps it.
struct MergedWeights {
  std::vector<ops::Weight> modules;
};

// Receives the inputs of linears, to collect statistics over samples.
class LinearObserver {
 public:
  virtual ~LinearObserver() = default;
  // x: [T, in], the input shared by these modules of the module table.
  virtual void on_input(std::span<const int> modules, const at::Tensor& x) = 0;
};

// The adapters of a batch. Merged weights and LoRA segments express every scheduling mode; without
// either, only the base model runs.
struct Adaptation {
  const MergedWeights* merged = nullptr;  // null: the base model
  ops::LoraBatch lora;
  LinearObserver* observer = nullptr;  // sees the decoder's linears; null: none

  // The adaptation of rows [begin, end), without the observer.
  Adaptation part(int64_t begin, int64_t end) const {
    return {merged, lora.part(begin, end), nullptr};
  }
  // The adaptation of these rows, in ascending order.
  Adaptation of_rows(std::span<const int64_t> rows) const {
    return {merged, lora.of_tokens(rows), observer};
  }
};

// An image or video for the vision tower, with the adapters of its request that target the tower or
// the projector.
struct VisualItem {
  const media::VisualInput* input = nullptr;
  std::vector<ops::ScaledAdapter> adapters;
};

// Visual embeddings of the tokens from `token` on. The first `hidden` columns replace the token
// embeddings; each further `hidden` columns are added to the output of one layer: 0, 1, and so on
// (ModelSpec::visual_levels).
struct VisualRows {
  int64_t token = 0;
  at::Tensor embeddings;  // [n, hidden * (1 + levels)]
};

// What an adapter changes in the embeddings or logits of rows [begin, end). It applies in every
// mode, because no mode merges it.
struct VocabularyUse {
  int64_t begin = 0, end = 0;
  const ops::VocabularyWeights* weights = nullptr;
  float coefficient = 1;
};

// The adapters of the rows whose logits are computed.
struct HeadAdaptation {
  ops::LoraBatch lora;  // on the output layer
  std::vector<VocabularyUse> vocabulary;
};

struct Batch {
  at::Tensor tokens;  // int64 [T]
  // [T, hidden], from Model::embed, modified by the step; undefined: computed from the tokens.
  at::Tensor embedded;
  at::Tensor positions;                       // int64 [axes, T]
  at::Tensor rope_lengths;                    // int64 [T], as Rotary takes them; may be undefined
  std::vector<ops::QuerySpan> spans;          // one per sequence
  const ops::KvArena* kv = nullptr;           // null in training: each span is a whole sequence
  mutable ops::SpanTables tables;             // built from the spans by the first layer
  const ops::StateArena* states = nullptr;    // for models with recurrent state; null in training
  std::vector<ops::StateSpan> state_spans;    // one per sequence, if the model has recurrent state
  mutable ops::StateSpanTables state_tables;  // built from both spans by the first layer with state
  // Training only: keep only the inputs of each layer and recompute the rest in the backward pass.
  // The batch must outlive the backward pass.
  bool recompute = false;
  Adaptation adaptation;
  std::vector<VocabularyUse> vocabulary;  // by rows of the batch
  at::Tensor host_tokens;                 // the tokens in host memory, if there is vocabulary
  std::vector<VisualRows> visual;
};

}  // namespace valora::models
