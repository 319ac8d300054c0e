#include "engine/rank_options.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <string>

#include "base/cores.h"

namespace valora {
namespace {

constexpr int kMostRanks = 64;  // more would spend their time in collectives

}  // namespace

Status check_rank_options(const EngineOptions& o) {
  const int ranks = o.tensor_parallel_size;
  if (ranks < 1)
    return invalid("--tensor-parallel-size must be at least 1", "tensor_parallel_size");
  if (ranks == 1) return {};
  const auto refused = [&](const std::string& what) {
    return unprocessable("--tensor-parallel-size " + std::to_string(ranks) + ": " + what,
                         "tensor_parallel_size");
  };
  if (ranks > kMostRanks)
    return refused("at most " + std::to_string(kMostRanks) + " ranks are served");
  if (o.device != DeviceKind::kCpu) return refused("ranks are served on CPUs only");
  if (o.kernels != KernelBackend::kNative) return refused("ranks need --kernels native");
  if (o.activations != Activations::kAuto)
    return refused(
        "ranks would round inputs by other scales than one rank does; leave out --activations");
  return {};
}

void split_threads(const EngineOptions& options) {
  if (const int ranks = options.tensor_parallel_size; ranks > 1)
    at::set_num_threads(std::max(1, at::get_num_threads() / ranks));
}

std::unique_ptr<Communicator> make_communicator(const EngineOptions& options) {
  const int ranks = options.tensor_parallel_size;
  if (ranks == 1) return nullptr;
  Communicator::Settings settings;
  // Ranks that share cores would keep each other from coming.
  if (ranks * at::get_num_threads() > usable_cores()) settings.spin = {};
  return std::make_unique<Communicator>(ranks, settings);
}

}  // namespace valora
