#include "lab/ops/measurement.h"

#include <algorithm>

namespace valora::bench {

void check_alike(const std::vector<Contender>& contenders, double tolerance) {
  const Contender& first = contenders.front();
  const at::Tensor expected = first.result().to(at::kFloat);
  const double scale = 1 + expected.abs().max().item<double>();
  for (const Contender& c : contenders) {
    const at::Tensor actual = c.result().to(at::kFloat);
    TORCH_CHECK(actual.sizes() == expected.sizes(), c.name, " computes ", actual.sizes(), ", ",
                first.name, " ", expected.sizes());
    const double difference = (actual - expected).abs().max().item<double>();
    TORCH_CHECK(difference <= tolerance * scale, c.name, " differs from ", first.name, " by ",
                difference, " at values up to ", scale - 1);
  }
}

const Timing* Measurement::find(const std::string& name) const {
  const auto at =
      std::find_if(timings.begin(), timings.end(), [&](const Timing& t) { return t.name == name; });
  return at == timings.end() ? nullptr : &*at;
}

double Measurement::ratio(const std::string& name) const {
  const Timing* other = find(name);
  return other ? other->seconds.p50 / ours().seconds.p50 : 0;
}

Measurement time_in_turns(Bench& bench, const Work& work,
                          const std::vector<Contender>& contenders) {
  bench.limits.refresh();
  std::vector<Runner> runners;
  for (const Contender& c : contenders) runners.push_back({c.name, c.run});
  Measurement m;
  m.work = work;
  m.timings = race(runners, bench.rules);
  m.bandwidth = bench.limits.bandwidth();
  return m;
}

Measurement compete(Bench& bench, const Work& work, const std::vector<Contender>& contenders,
                    double tolerance) {
  check_alike(contenders, tolerance);
  return time_in_turns(bench, work, contenders);
}

void set_bound(Measurement& m, const Limits& limits) {
  const double memory = m.work.bytes / m.bandwidth,
               arithmetic = m.work.operations / limits.arithmetic(m.work.arithmetic);
  m.bandwidth_bound = memory >= arithmetic;
  m.bound_seconds = std::max(memory, arithmetic);
}

Contender pure(std::string name, const std::function<at::Tensor()>& run) {
  return {std::move(name), [run] { run(); }, run};
}

Contender adding(std::string name, const at::Tensor& y, const std::function<void()>& run) {
  return {std::move(name), run, [y, run] {
            y.zero_();
            run();
            return y.clone();
          }};
}

}  // namespace valora::bench
