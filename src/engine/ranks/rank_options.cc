#include "engine/ranks/rank_options.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <string>

#include "base/machine/cores.h"
#include "base/threads/host_communicator.h"
#include "ops/device/devices.h"
#include "ops/device/gpu.h"
#include "ops/device/gpu_communicator.h"

namespace valora {
namespace {

constexpr int kMostRanks = 64;  // more would spend their time in collectives

// Places equally many ranks on each node, with equal shares of its CPUs; empty if that is
// impossible.
std::vector<CoreSet> ranks_of_nodes(const std::vector<CoreSet>& nodes, size_t ranks) {
  std::vector<CoreSet> sets;
  if (nodes.size() < 2 || ranks % nodes.size() != 0) return sets;
  const size_t each = ranks / nodes.size();
  for (const CoreSet& node : nodes) {
    const size_t count = node.size() / each;
    if (count == 0) return {};
    for (size_t i = 0; i < each; ++i) {
      const auto first = node.begin() + static_cast<std::ptrdiff_t>(i * count);
      sets.emplace_back(first, first + static_cast<std::ptrdiff_t>(count));
    }
  }
  return sets;
}

// Why GPUs cannot run the ranks; empty if they can. Kernels are chosen for one kind of GPU, and all
// ranks have the same number of blocks.
std::string why_not_on_gpus(int ranks) {
  if (std::string why = ops::why_no_gpu_communicator(); !why.empty()) return why;
  const int count = ops::gpu_count();
  if (count < ranks)
    return "each rank has a GPU, and " + std::to_string(count) + (count == 1 ? " is" : " are") +
           " visible";
  const at::Device first(at::kCUDA, 0);
  const auto gpu_of = [&](int rank) {
    const ops::OnDevice current(ops::device_of_rank(first, rank));
    return ops::this_gpu();
  };
  const ops::Gpu of_first = gpu_of(0);
  for (int rank = 1; rank < ranks; ++rank)
    if (const ops::Gpu other = gpu_of(rank);
        other.name != of_first.name || other.capability != of_first.capability)
      return "GPUs of one kind are served, but GPU 0 is " + of_first.name + ", and GPU " +
             std::to_string(rank) + " is " + other.name;
  return {};
}

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
  if (o.kernels != KernelBackend::kNative) return refused("ranks need --kernels native");
  const std::string why = o.device == DeviceKind::kCpu ? "" : why_not_on_gpus(ranks);
  return why.empty() ? Status() : Status(refused(why));
}

Result<std::vector<CoreSet>> rank_cores(const EngineOptions& o, const std::vector<CoreSet>& nodes) {
  const auto ranks = static_cast<size_t>(o.tensor_parallel_size);
  if (o.rank_cores == "none" || (o.rank_cores == "auto" && ranks == 1))
    return std::vector<CoreSet>();
  if (o.rank_cores == "auto")
    return o.device == DeviceKind::kCpu ? ranks_of_nodes(nodes, ranks) : std::vector<CoreSet>();
  const auto refused = [](const std::string& what) {
    return invalid("--rank-cores: " + what, "rank_cores");
  };
  auto sets = parse_core_sets(o.rank_cores);
  if (!sets.ok()) return refused(sets.error().message);
  if (sets->size() != ranks)
    return refused("one CPU set per rank is needed: expected " + std::to_string(ranks) + ", got " +
                   std::to_string(sets->size()));
  const std::vector<int> usable = cpus_of_affinity();
  for (const CoreSet& set : *sets)
    for (const int core : set)
      if (!std::ranges::binary_search(usable, core))
        return refused("this process may not use CPU " + std::to_string(core) + ", only " +
                       to_text(usable));
  return sets;
}

void split_threads(const EngineOptions& options, const std::vector<CoreSet>& cores) {
  const int ranks = options.tensor_parallel_size;
  if (!cores.empty() && options.threads == 0) {
    const CoreSet& fewest = *std::ranges::min_element(cores, {}, &CoreSet::size);
    at::set_num_threads(
        std::min(static_cast<int>(fewest.size()), std::max(1, usable_cores() / ranks)));
  } else if (ranks > 1) {
    at::set_num_threads(std::max(1, at::get_num_threads() / ranks));
  }
}

std::unique_ptr<Communicator> make_communicator(const EngineOptions& options) {
  const int ranks = options.tensor_parallel_size;
  if (ranks == 1) return nullptr;
  if (options.device != DeviceKind::kCpu) return ops::make_gpu_communicator(ranks);
  HostCommunicator::Settings settings;
  // Ranks that share cores would keep each other from running by spinning.
  if (ranks * at::get_num_threads() > usable_cores()) settings.spin = {};
  return std::make_unique<HostCommunicator>(ranks, settings);
}

}  // namespace valora
