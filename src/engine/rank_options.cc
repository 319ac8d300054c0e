#include "engine/rank_options.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <string>

#include "base/cores.h"

namespace valora {
namespace {

constexpr int kMostRanks = 64;  // more would spend their time in collectives

// As many ranks on each node, with equal parts of its CPUs; none if that is not possible.
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
  return {};
}

Result<std::vector<CoreSet>> rank_cores(const EngineOptions& o, const std::vector<CoreSet>& nodes) {
  const auto ranks = static_cast<size_t>(o.tensor_parallel_size);
  if (o.rank_cores == "none" || (o.rank_cores == "auto" && ranks == 1))
    return std::vector<CoreSet>();
  if (o.rank_cores == "auto") return ranks_of_nodes(nodes, ranks);
  const auto refused = [](const std::string& what) {
    return invalid("--rank-cores: " + what, "rank_cores");
  };
  auto sets = parse_core_sets(o.rank_cores);
  if (!sets.ok()) return refused(sets.error().message);
  if (sets->size() != ranks)
    return refused(std::to_string(sets->size()) + " sets for " + std::to_string(ranks) + " ranks");
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
    at::set_num_threads(static_cast<int>(fewest.size()));
  } else if (ranks > 1) {
    at::set_num_threads(std::max(1, at::get_num_threads() / ranks));
  }
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
