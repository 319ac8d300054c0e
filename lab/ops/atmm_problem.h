// The low-rank products of one step on one linear: tokens with many adapters (VaLoRA §4.3).
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "base/json/json.h"
#include "lab/ops/measurement.h"
#include "ops/linear/linear.h"

namespace valora::bench {

struct AtmmShape {
  int64_t requests = 1;
  int64_t tokens_per_request = 1;  // 1: decode
  int64_t hidden = 0;              // both inputs and outputs
  std::vector<int64_t> ranks;      // assigned to the adapters cyclically
  std::string popularity;          // distinct, uniform, zipf:1.5 or identical, as in Punica
  bool cold = false;               // other layers evict the adapters from the caches

  int64_t tokens() const { return requests * tokens_per_request; }
  std::string label() const;
  Json fields() const;
};

struct AtmmAdapter {
  at::Tensor a;  // [rank, in]
  at::Tensor b;  // [out, rank]
  float coefficient;
};

// Tokens [begin, end) use adapters[adapter].
struct AtmmRun {
  int64_t begin, end;
  size_t adapter;
};

struct AtmmProblem {
  AtmmShape shape;
  at::Tensor x;               // [tokens, in], bf16
  std::vector<AtmmRun> runs;  // one per maximal run of tokens with the same adapter
  // Copies of the same adapters: one, or enough to exceed the caches.
  std::vector<std::vector<AtmmAdapter>> layers;

  int64_t adapters() const { return static_cast<int64_t>(layers.front().size()); }
  at::Tensor output(at::ScalarType dtype) const {
    return at::zeros({shape.tokens(), shape.hidden}, at::TensorOptions().dtype(dtype));
  }
  Work work() const;
};

AtmmProblem make_problem(const AtmmShape& shape);

}  // namespace valora::bench
