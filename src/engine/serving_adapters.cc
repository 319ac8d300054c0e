// Loading and unloading of adapters, on the adapter worker.
#include "adapters/adapter_spec.h"
#include "base/log.h"
#include "engine/memory_plan.h"
#include "engine/runner.h"
#include "engine/serving_engine.h"

namespace valora {
namespace {

// A third of the free memory: an adapter is read, copied and packed.
size_t largest_adapter() { return static_cast<size_t>(available_host_memory() / 3); }

}  // namespace

Result<AdapterCard> ServingEngine::load_now(const LoadAdapter& request) {
  VALORA_CHECK(adapters_.check(request));
  if (!request.same_as.empty()) return adapters_.add_name(request);
  const adapters::ModuleTable& modules = loaded_.model->spec().modules;
  VALORA_TRY(spec, adapters::read_adapter(request.path, modules,
                                          {options_.max_lora_rank, largest_adapter()}));
  for (const std::string& warning : spec.warnings)
    spdlog::warn("adapter {}: {}", request.name, warning);
  auto shared = std::make_shared<const adapters::AdapterSpec>(std::move(spec));
  auto built = build_adapter(*shared, modules, loaded_.dtype, device_);
  return adapters_.add(request, shared, built);
}

Result<AdapterCard> ServingEngine::try_load(const LoadAdapter& request) {
  if (stopping_) return Error{ErrorCode::kCancelled, "the server was stopped", {}};
  try {
    return load_now(request);
  } catch (const std::exception& e) {
    return internal("loading adapter " + request.name + " failed: " + reason_of(e));
  }
}

void ServingEngine::load_adapter(LoadAdapter request,
                                 std::function<void(Result<AdapterCard>)> done) {
  adapter_workers_->post(
      [this, request = std::move(request), done = std::move(done)] { done(try_load(request)); });
}

void ServingEngine::unload_adapter(std::string name, std::optional<uint64_t> expected_generation,
                                   std::function<void(Status)> done) {
  // On the same worker as loads, so that they run in the order of the calls.
  adapter_workers_->post(
      [this, name = std::move(name), expected_generation, done = std::move(done)] {
        auto removed = adapters_.remove(name, expected_generation);
        if (!removed.ok()) return done(removed.error());
        const AppliedAdapter use{*removed, 1};
        // An adapter with heads only shares the cache of the base model.
        if (use.adapter->has_weights)
          post([identity = identity_of({&use, 1})](EngineCore& core) {
            core.forget_adapter(identity);
          });
        done({});
      });
}

}  // namespace valora
