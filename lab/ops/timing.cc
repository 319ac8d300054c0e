#include "lab/ops/timing.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <random>

namespace valora::bench {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double sample(const std::function<void()>& run, int repeats) {
  const double begin = now();
  for (int i = 0; i < repeats; ++i) run();
  return (now() - begin) / repeats;
}

int repeats_for(const std::function<void()>& run, double min_sample) {
  run();  // warm-up: touches memory and fills primitive caches
  const double once = std::max(1e-9, fastest(run, 2));
  return static_cast<int>(std::clamp(std::ceil(min_sample / once), 1.0, 10000.0));
}

}  // namespace

std::vector<Timing> race(const std::vector<Runner>& runners, const RaceRules& rules) {
  std::vector<int> repeats;
  for (const Runner& runner : runners) repeats.push_back(repeats_for(runner.run, rules.min_sample));
  std::vector<std::vector<double>> times(runners.size());
  std::vector<size_t> order(runners.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::mt19937 random(1);
  const double end = now() + rules.seconds;
  for (int round = 0; round < rules.min_rounds || (round < rules.max_rounds && now() < end);
       ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (const size_t i : order) {
      runners[i].run();
      times[i].push_back(sample(runners[i].run, repeats[i]));
    }
  }
  std::vector<Timing> result;
  for (size_t i = 0; i < runners.size(); ++i)
    result.push_back({runners[i].name, distribution_of(std::move(times[i]))});
  return result;
}

double fastest(const std::function<void()>& run, int rounds) {
  double best = INFINITY;
  for (int i = 0; i < rounds; ++i) best = std::min(best, sample(run, 1));
  return best;
}

}  // namespace valora::bench
