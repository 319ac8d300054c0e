#include "engine/start/model_costs.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/files/file.h"
#include "base/log/log.h"
#include "engine/start/dtype.h"
#include "kernels/tiles/hardware.h"
#include "models/decoder/delta_net.h"
#include "ops/attention/attention.h"
#include "ops/device/gpu.h"

namespace valora {
namespace {

// Bytes and operations per second that the machine sustains.
struct Speed {
  double bytes, operations;
};

Speed speed_of(at::Device device, int ranks) {
  if (!device.is_cpu()) return {1.5e12, 1.5e14};
  return {20e9, 150e9 * ranks * at::get_num_threads()};
}

struct Sizes {
  double linears = 0;  // weights of the decoder's linears
  double experts = 0;  // those of them in the experts of mixtures
  double chosen = 0;   // those of them in the experts that a token chooses
  double ends = 0;     // sum of the inputs and outputs of the linears that a token uses
  double count = 0;    // of these linears
  // Those that every step reads, and those that a token multiplies.
  double shared() const { return linears - experts; }
  double used() const { return shared() + chosen; }
};

Sizes sizes_of(const models::ModelSpec& spec) {
  Sizes sizes;
  for (const adapters::Module& module : spec.modules.modules()) {
    if (!module.in_decoder()) continue;
    const double weights = static_cast<double>(module.in) * static_cast<double>(module.out);
    const bool expert = module.mixture == adapters::Module::Mixture::kExpert;
    const double part =
        expert ? static_cast<double>(spec.experts.chosen) / static_cast<double>(spec.experts.count)
               : 1;
    sizes.linears += weights;
    sizes.experts += expert ? weights : 0;
    sizes.chosen += expert ? part * weights : 0;
    sizes.ends += part * static_cast<double>(module.in + module.out);
    sizes.count += part;
  }
  return sizes;
}

// Two all-reduces per layer: the ranks wait for each other and add up each token's partial sums.
void add_collectives(const models::ModelSpec& spec, int ranks, const Speed& speed,
                     scheduler::StepCosts& costs) {
  if (ranks == 1) return;
  constexpr double kWait = 30e-6;  // seconds (docs/ranks.md)
  const auto sums = static_cast<double>(2 * spec.layers * spec.hidden);
  costs.step += static_cast<double>(2 * spec.layers) * kWait;
  costs.token += 2 * (ranks - 1) * sums * sizeof(float) / speed.bytes;
}

std::string machine_of(at::Device device, int ranks) {
  if (device.is_cpu())
    return fmt::format("{}, {}{} threads", kernels::this_hardware().text(),
                       ranks > 1 ? fmt::format("{} ranks of ", ranks) : "", at::get_num_threads());
  const std::string name = ops::this_gpu().name;
  return name.empty() ? device.str() : name;
}

}  // namespace

serving::CostKey cost_key(const EngineOptions& options, const models::LoadedModel& model,
                          at::Device device) {
  const models::ModelSpec& spec = model.model->spec();
  const Sizes sizes = sizes_of(spec);
  std::string form = dtype_name(model.dtype);
  if (model.weights->keeps_integers())
    form += fmt::format(", {:.2f} bits each",
                        8 * static_cast<double>(model.weights->held().decoder) / sizes.linears);
  if (options.activations != Activations::kAuto) form += ", inputs in int8";
  if (options.kv_cache_dtype != KvCacheDtype::kAuto)
    form += ", KV in " + name_of(options.kv_cache_dtype);
  return {
      machine_of(device, options.tensor_parallel_size),
      fmt::format("{}, {} layers, hidden {}, vocabulary {}, {:.0f} weights, {}", spec.architecture,
                  spec.layers, spec.hidden, spec.vocab, sizes.linears, form)};
}

scheduler::StepCosts estimate_costs(const EngineOptions& options, const models::LoadedModel& model,
                                    at::Device device) {
  const models::ModelSpec& spec = model.model->spec();
  const Speed speed = speed_of(device, options.tensor_parallel_size);
  const Sizes sizes = sizes_of(spec);
  const auto bytes = static_cast<double>(c10::elementSize(model.dtype));
  const double vocabulary = static_cast<double>(spec.vocab) * static_cast<double>(spec.hidden);
  const double keys = static_cast<double>(spec.kv_layers() * spec.kv_heads * spec.head_dim);
  const int64_t kv_block = ops::KvArena::block_bytes(
      {spec.kv_layers(), spec.kv_heads, spec.head_dim, model.dtype, kv_format_of(options)}, device);
  const bool integers = model.weights->keeps_integers();
  const models::HeldBytes& held = model.weights->held();
  const double weight_bytes = integers ? static_cast<double>(held.decoder) / sizes.linears : bytes;
  const double read = sizes.shared() * weight_bytes +
                      (integers ? static_cast<double>(held.head) : vocabulary * bytes);
  const double merged = sizes.linears * bytes;
  const double call = 2e-6;  // seconds to start one product
  scheduler::StepCosts costs;
  costs.step = read / speed.bytes + sizes.count * call;
  costs.prefill_token = 2 * sizes.used() / speed.operations;
  costs.free_tokens = device.is_cpu() ? 8 : 128;
  // Each step reads and writes the state of a sequence.
  const auto state = static_cast<double>(models::state_shape(spec.state, model.dtype).bytes());
  // It also reads the experts that it chooses: with many tokens in a step they share some.
  costs.decode_token = 2 * (sizes.used() + vocabulary) / speed.operations +
                       (2 * state + sizes.chosen * weight_bytes) / speed.bytes;
  costs.prefill_context = 4 * keys / speed.operations;
  costs.decode_context = static_cast<double>(kv_block) / ops::KvArena::kBlockTokens / speed.bytes;
  costs.segment = sizes.count * call / 2;
  costs.rank = sizes.ends * bytes / speed.bytes;
  costs.token_rank = 2 * sizes.ends / speed.operations;
  costs.merge = (merged + (integers ? static_cast<double>(held.decoder) : merged)) / speed.bytes;
  costs.merged_rank = 2 * sizes.linears / speed.operations;
  costs.restore = 2 * sizes.linears * bytes / speed.bytes;
  add_collectives(spec, options.tensor_parallel_size, speed, costs);
  return costs;
}

Result<KnownCosts> find_costs(const EngineOptions& options, const models::LoadedModel& model,
                              at::Device device) {
  const serving::CostKey key = cost_key(options, model, device);
  const std::string& named = options.scheduling.costs;
  const std::string path =
      named.empty() ? scheduler::own_costs_path(key.machine, key.model) : named;
  if (!path.empty() && (!named.empty() || file_exists(path))) {
    auto file = scheduler::read_cost_file(path);
    if (!file.ok() && !named.empty()) return file.error();
    if (!file.ok()) {
      spdlog::warn("{}; it is not used", file.error().message);
    } else if (file->model != key.model) {
      if (!named.empty())
        return invalid(fmt::format("--costs {}: the file is for the model {}; this is {}", named,
                                   file->model, key.model),
                       "costs");
    } else {
      if (file->machine != key.machine)
        spdlog::warn("{} was measured on {}; this is {}", path, file->machine, key.machine);
      return KnownCosts{file->fitted.costs, path};
    }
  }
  return KnownCosts{estimate_costs(options, model, device),
                    "an estimate from the sizes of the model; `valora tune --cost` measures them"};
}

}  // namespace valora
