// Adapters in layouts other than the engine's: of single modules, and of a running engine, with one
// copy per adapter and module, created on first use.
#pragma once

#include <ATen/ATen.h>

#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "ops/lora/lora.h"

namespace valora::bench {

// A [rank, in] and B [out, rank] of an adapter on one module, bf16, in host memory.
struct PlainFactors {
  at::Tensor a, b;
};

// Throws c10::Error if the weights are not bf16 in panels.
PlainFactors plain_factors(const ops::LoraBatch& lora, size_t segment, int module);

// A single module in panels, with the rank zero-padded to a multiple of rank_step.
ops::AdapterWeights panel_adapter(const PlainFactors& factors, int64_t rank_step, float scale);

// Caches the result of `make` by adapter and module. Thread-safe; references stay valid.
template <typename Copy>
class AdapterCopies {
 public:
  template <typename Make>
  const Copy& get(const ops::LoraBatch& lora, size_t segment, int module, Make&& make) {
    const std::lock_guard lock(mutex_);
    std::optional<Copy>& copy = copies_[{&lora.adapter(segment), module}];
    if (!copy) copy.emplace(make(plain_factors(lora, segment, module)));
    return *copy;
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<const ops::AdapterWeights*, int>, std::optional<Copy>> copies_;
};

}  // namespace valora::bench
