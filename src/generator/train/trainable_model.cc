#include "generator/train/trainable_model.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>

#include "base/threads/worker_pool.h"
#include "engine/start/dtype.h"
#include "generator/stopped.h"

namespace valora::generator {

Result<std::unique_ptr<TrainableModel>> TrainableModel::open(const EngineOptions& options) {
  auto model = std::make_unique<TrainableModel>();
  if (options.device != DeviceKind::kCpu)
    return not_implemented(
        "training on --device " + name_of(options.device) + " is not supported yet, only on cpu",
        "device");
  VALORA_TRY(loaded,
             models::load_model({options.model_path, options.mmproj}, scalar_type(options.dtype),
                                model->device, models::ModelUse::kTraining, rounding_of(options)));
  model->loaded = std::move(loaded);
  const models::ModelSpec& spec = model->loaded.model->spec();
  model->adaptive_threads = options.threads == 0;
  model->max_tokens = std::min<int64_t>(
      options.max_model_len.value_or(static_cast<int>(spec.max_positions)), spec.max_positions);
  VALORA_TRY(frontend, serving::Frontend::open(options, *model->loaded.family, spec));
  model->frontend = std::move(frontend);
  model->frontend->limit_tokens(static_cast<int>(model->max_tokens));
  return model;
}

Result<std::vector<Example>> TrainableModel::examples(std::vector<ExampleRequest> requests,
                                                      int threads,
                                                      const std::function<void(int, int)>& progress,
                                                      const std::stop_token& stop) const {
  VALORA_TRY(maker, ExampleMaker::open(*frontend, loaded.model->spec().axes, max_tokens));
  const int total = static_cast<int>(requests.size());
  std::vector<std::optional<Result<Example>>> made(requests.size());
  std::atomic<int> next = 0;
  std::atomic<bool> failed = false;
  std::mutex mutex;
  int done = 0;
  {
    WorkerPool pool(std::max(1, threads));
    for (int t = 0; t < std::max(1, threads); ++t)
      pool.post([&] {
        for (int i = next++; i < total && !failed && !stop.stop_requested(); i = next++) {
          made[static_cast<size_t>(i)] = maker.make(std::move(requests[static_cast<size_t>(i)]));
          if (!made[static_cast<size_t>(i)]->ok()) failed = true;
          const std::lock_guard lock(mutex);
          if (progress) progress(++done, total);
        }
      });
  }
  if (stop.stop_requested()) return stopped();
  std::vector<Example> examples;
  for (auto& result : made) {
    if (!result) continue;  // not started, because another one failed
    if (!result->ok()) return result->error();
    examples.push_back(std::move(**result));
  }
  return examples;
}

}  // namespace valora::generator
