// The memory behind LoraModules.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "kernels/types/lora.h"

namespace valora::kernels {

class LoraModuleMap {
 public:
  LoraModuleMap() = default;
  // modules: the number of modules of the model. None is touched.
  explicit LoraModuleMap(size_t modules)
      : modules_(modules), touched_((modules + 63) / 64), before_(touched_.size()) {}

  size_t model_modules() const { return modules_; }
  // Valid until the next add(). Moving the map does not invalidate it.
  LoraModules view() const { return {entries_.data(), touched_.data(), before_.data()}; }
  // Null if the module is not touched. module: below model_modules(), or -1.
  const LoraModule* find(int module) const { return touched_module(view(), module); }
  LoraModule* find(int module) {
    return const_cast<LoraModule*>(std::as_const(*this).find(module));
  }
  std::span<const LoraModule> entries() const { return entries_; }  // by module
  std::span<const uint64_t> touched() const { return touched_; }

  // The entry of a module, which is touched from now on. Modules in ascending order are the
  // cheapest.
  LoraModule& add(int module) {
    if (LoraModule* known = find(module)) return *known;
    const auto word = static_cast<size_t>(module) / 64;
    const uint64_t bit = uint64_t{1} << (module % 64);
    const uint32_t place =
        before_[word] + static_cast<uint32_t>(std::popcount(touched_[word] & (bit - 1)));
    entries_.insert(entries_.begin() + place, LoraModule{});
    touched_[word] |= bit;
    for (size_t i = word + 1; i < before_.size(); ++i) ++before_[i];
    return entries_[place];
  }

 private:
  size_t modules_ = 0;
  std::vector<LoraModule> entries_;
  std::vector<uint64_t> touched_;
  std::vector<uint32_t> before_;
};

}  // namespace valora::kernels
