#include "lab/ops/collective_bench.h"

#include <fmt/format.h>

#include "base/threads/host_communicator.h"
#include "base/threads/rank_threads.h"

namespace valora::bench {
namespace {

constexpr int64_t kHidden = 896;  // of a 0.5 B model

Measurement measure_all_reduces(Bench& bench, int ranks, int64_t values) {
  HostCommunicator communicator(ranks, {});
  RankThreads threads(communicator);
  std::vector<std::vector<float>> sums(static_cast<size_t>(ranks),
                                       std::vector<float>(static_cast<size_t>(values)));
  const Contender ours{kOurs,
                       [&] {
                         threads.run([&](int rank) {
                           for (int i = 0; i < kAllReduces; ++i)
                             communicator.all_reduce(rank, sums[static_cast<size_t>(rank)],
                                                     serial_for, Communicator::Reduction::kSum);
                         });
                       },
                       {}};
  const double additions = static_cast<double>(kAllReduces * values * (ranks - 1));
  return time_in_turns(bench, {0, additions, Arithmetic::kFloat}, {ours});
}

Shape all_reduce_shape(int ranks, int64_t tokens) {
  const int64_t values = tokens * kHidden;
  return {"all_reduce",
          fmt::format("{} x {} values on {} ranks", kAllReduces, values, ranks),
          {{"ranks", ranks}, {"values", values}, {"all_reduces", kAllReduces}},
          [=](Bench& bench) { return measure_all_reduces(bench, ranks, values); }};
}

}  // namespace

std::vector<Shape> collective_shapes(bool quick) {
  std::vector<Shape> shapes{all_reduce_shape(2, 1), all_reduce_shape(2, 128)};
  if (quick) return shapes;
  for (const int64_t tokens : {8, 512}) shapes.push_back(all_reduce_shape(2, tokens));
  return shapes;
}

}  // namespace valora::bench
