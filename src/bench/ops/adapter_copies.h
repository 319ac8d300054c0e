// Adapters in other layouts than the engine's: of single modules, and of a running engine, one copy
// per adapter and module, made when first needed.
#pragma once

#include <ATen/ATen.h>

#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "ops/lora.h"

namespace valora::bench {

// A [rank, in] and B [out, rank] of an adapter on a module. bf16, in host memory.
struct PlainFactors {
  at::Tensor a, b;
};

// Throws c10::Error if the weights are not bf16 in panels.
PlainFactors plain_factors(const ops::LoraBatch& lora, size_t segment, int module);

// A single module in panels, with zeros that pad the rank to a multiple of rank_step.
ops::AdapterWeights panel_adapter(const PlainFactors& factors, int64_t rank_step, float scale);

// What `make` gives, by adapter and module. Thread-safe; the references stay valid.
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
