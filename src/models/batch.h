// One step's flat batch, as a model sees it (DESIGN §3): T tokens of S sequences, one after
// another.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <vector>

#include "media/processor.h"
#include "ops/attention.h"
#include "ops/linear.h"

namespace valora::models {

// One adapter's products, by the model's module index; modules it does not touch are null.
struct AdapterWeights {
  std::vector<std::unique_ptr<ops::LoraWeight>> modules;
  std::vector<float> scales;  // of each module: alpha / rank and the like
};

// Linears by the model's module index that stand in the place of the base model's, with the same
// bias; those that are not defined leave it as it is.
struct MergedWeights {
  std::vector<ops::Weight> modules;
};

// Tokens [token_begin, token_end) run under `adapter`; the coefficient multiplies its own scale.
struct Segment {
  int64_t token_begin = 0;
  int64_t token_end = 0;
  const AdapterWeights* adapter = nullptr;
  float coefficient = 1;
};

// What a batch runs under. A mode is nothing but this: no segment, no LoRA work (DESIGN §3).
struct Adaptation {
  const MergedWeights* merged = nullptr;  // none: the base model's weights
  std::vector<Segment> segments;          // ascending in token_begin; those of one token add up
  ops::Dropout
      dropout{};  // in training: of every module's low-rank input, each under a seed of its own
};

struct AdapterUse {
  const AdapterWeights* adapter = nullptr;
  float coefficient = 1;
};

// One image or video for the vision tower, with those adapters of its request that touch the tower
// or the projector.
struct VisualItem {
  const media::VisualInput* input = nullptr;
  std::vector<AdapterUse> adapters;
};

// Rows of visual embeddings that take the place of token embeddings from `token` on.
struct VisualRows {
  int64_t token = 0;
  at::Tensor embeddings;  // [n, hidden]
};

struct Batch {
  at::Tensor tokens;                  // int64 [T]
  at::Tensor positions;               // int64 [axes, T]
  std::vector<ops::QuerySpan> spans;  // one a sequence
  const ops::KvArena* kv = nullptr;   // none, in training: every span is a whole sequence
  bool recompute = false;  // in training: layers keep their inputs alone, and run again for their
                           // gradients; the batch must live until those were taken
  Adaptation adaptation;
  std::vector<VisualRows> visual;
};

}  // namespace valora::models
