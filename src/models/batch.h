// One step's flat batch, as a model sees it: T tokens of S sequences, one after another.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "media/processor.h"
#include "ops/attention.h"
#include "ops/lora.h"

namespace valora::models {

// Linears by the model's module index that replace the base model's, with the same
// bias; those that are not defined leave it as it is.
struct MergedWeights {
  std::vector<ops::Weight> modules;
};

// What a batch runs under. A mode is nothing but this: no segment, no LoRA work.
struct Adaptation {
  const MergedWeights* merged = nullptr;  // none: the base model's weights
  ops::LoraBatch lora;
};

// One image or video for the vision tower, with those adapters of its request that touch the tower
// or the projector.
struct VisualItem {
  const media::VisualInput* input = nullptr;
  std::vector<ops::ScaledAdapter> adapters;
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
