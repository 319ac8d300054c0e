#include "engine/model_host.h"

#include <utility>

#include "adapters/folder/read_at_rest.h"
#include "base/log/log.h"
#include "engine/adapters/build_adapter.h"
#include "engine/adapters/value_range.h"
#include "engine/runner/model_fault.h"
#include "models/weights/checkpoint_weights.h"

namespace valora {

ModelHost::ModelHost(models::LoadedModel loaded, std::unique_ptr<MemoryTiers> tiers,
                     std::unique_ptr<Runner> runner, const adapters::AdapterLimits& limits,
                     std::shared_ptr<const MergeBound> merges, at::Device device,
                     int64_t head_limit)
    : loaded_(std::move(loaded)),
      tiers_(std::move(tiers)),
      runner_(std::move(runner)),
      limits_(limits),
      merges_(std::move(merges)),
      device_(device),
      heads_(head_limit, device) {}

Result<serving::AdapterBackend::Read> ModelHost::read(const LoadAdapter& request) {
  try {
    return read_folder(request);
  } catch (const std::exception& e) {
    return model_fault("an adapter could not be loaded", e);
  }
}

Result<serving::AdapterBackend::Read> ModelHost::read_folder(const LoadAdapter& request) {
  const adapters::ModuleTable& modules = loaded_.model->spec().modules;
  const bool lazy = request.lazy && tiers_->adapters();
  const FolderPath folder(request.path, request.root);
  const models::CheckpointWeights base(loaded_);
  VALORA_TRY(spec, adapters::read_at_rest(folder, [&] {
               return lazy ? adapters::read_adapter_headers(folder, modules, limits_, base)
                           : adapters::read_adapter(folder, modules, limits_, base);
             }));
  VALORA_CHECK(check_range(spec, modules, loaded_.dtype));
  for (const std::string& warning : spec.warnings)
    spdlog::warn("adapter {}: {}", request.name, warning);
  VALORA_TRY(heads, heads_.add(spec.heads));
  auto shared = std::make_shared<const adapters::AdapterSpec>(std::move(spec));
  VALORA_TRY(built, build_adapter(shared, modules, loaded_.dtype, device_, limits_,
                                  tiers_->adapters(), heads, *merges_));
  return Read{std::move(shared), std::move(built), lazy};
}

serving::AdapterBackend::Residency ModelHost::residency(const Digest& content) const {
  return tiers_->residency(content);
}

}  // namespace valora
