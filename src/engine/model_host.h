// The tensor side of an engine in this process: holds the model, the adapters' weights and the
// pool's memory behind the interfaces of serving/model_side.h.
#pragma once

#include <cstdint>
#include <memory>

#include "adapters/adapter_spec.h"
#include "engine/adapters/head_store.h"
#include "engine/memory/memory_tiers.h"
#include "engine/runner/runner.h"
#include "models/registry.h"
#include "serving/model_side.h"

namespace valora {

class ModelHost final : public serving::ModelSide, serving::AdapterBackend {
 public:
  ModelHost(models::LoadedModel loaded, std::unique_ptr<MemoryTiers> tiers,
            std::unique_ptr<Runner> runner, const adapters::AdapterLimits& limits,
            std::shared_ptr<const MergeBound> merges, at::Device device, int64_t head_limit);

  serving::ModelRunner& runner() override { return *runner_; }
  serving::AdapterBackend& adapters() override { return *this; }
  serving::PoolBacking& memory() override { return *tiers_; }

 private:
  Result<Read> read(const LoadAdapter& request) override;
  Residency residency(const Digest& content) const override;
  HeadMemory head_memory() const override { return {heads_.bytes(), heads_.limit()}; }
  Result<Read> read_folder(const LoadAdapter& request);

  const models::LoadedModel loaded_;
  const std::unique_ptr<MemoryTiers> tiers_;
  const std::unique_ptr<Runner> runner_;
  const adapters::AdapterLimits limits_;
  const std::shared_ptr<const MergeBound> merges_;
  const at::Device device_;
  HeadStore heads_;
};

}  // namespace valora
