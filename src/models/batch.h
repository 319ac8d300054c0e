// The flat batch of one step: T tokens of S sequences, one sequence after the other.
#pragma once

#include <ATen/ATen.h>

#include <span>
#include <vector>

#include "media/processor.h"
#include "ops/attention.h"
#include "ops/lora.h"
#include "ops/state_arena.h"
#include "ops/vocabulary.h"

namespace valora::models {

// Merged weights by module index. A defined entry replaces the weight of the base model (the bias
// stays); an undefined one leaves it.
struct MergedWeights {
  std::vector<ops::Weight> modules;
};

// Sees the inputs of linears, for statistics of samples.
class LinearObserver {
 public:
  virtual ~LinearObserver() = default;
  // x: [T, in], the input of these modules of the module table.
  virtual void on_input(std::span<const int> modules, const at::Tensor& x) = 0;
};

// The adapters of a batch. Every scheduling mode is expressed by merged weights and LoRA segments;
// without both, only the base model runs.
struct Adaptation {
  const MergedWeights* merged = nullptr;  // null: the base model
  ops::LoraBatch lora;
  LinearObserver* observer = nullptr;  // of the decoder's linears; null: none

  // Of rows [begin, end).
  Adaptation part(int64_t begin, int64_t end) const {
    return {merged, lora.part(begin, end), nullptr};
  }
};

// An image or video for the vision tower, with the adapters of its request that target the tower or
// the projector.
struct VisualItem {
  const media::VisualInput* input = nullptr;
  std::vector<ops::ScaledAdapter> adapters;
};

// Visual embeddings of the tokens from `token` on. The first `hidden` columns replace the token
// embeddings; the next ones are added to the output of layer 0, then of layer 1, and so on
// (ModelSpec::visual_levels).
struct VisualRows {
  int64_t token = 0;
  at::Tensor embeddings;  // [n, hidden * (1 + levels)]
};

// What an adapter makes of the embeddings or the logits of rows [begin, end). In every mode: no
// mode merges it.
struct VocabularyUse {
  int64_t begin = 0, end = 0;
  const ops::VocabularyWeights* weights = nullptr;
  float coefficient = 1;
};

// The adapters of the rows whose logits are wanted.
struct HeadAdaptation {
  ops::LoraBatch lora;  // on the output layer
  std::vector<VocabularyUse> vocabulary;
};

struct Batch {
  at::Tensor tokens;  // int64 [T]
  // [T, hidden], what Model::embed gives, which the step changes; undefined: made of the tokens.
  at::Tensor embedded;
  at::Tensor positions;                     // int64 [axes, T]
  at::Tensor rope_lengths;                  // int64 [T], as Rotary takes them; may be undefined
  std::vector<ops::QuerySpan> spans;        // one per sequence
  const ops::KvArena* kv = nullptr;         // null in training: each span is a whole sequence
  mutable ops::SpanTables tables;           // of the spans; made by the first layer
  const ops::StateArena* states = nullptr;  // of models with states; null in training
  std::vector<ops::StateSpan> state_spans;  // one per sequence, if there are states
  // Training only: keep only the inputs of each layer, and run it again in the backward pass. The
  // batch must then live until the backward pass has ended.
  bool recompute = false;
  Adaptation adaptation;
  // Of the tokens, which must be in host memory then.
  std::vector<VocabularyUse> vocabulary;
  std::vector<VisualRows> visual;
};

}  // namespace valora::models
