#include "lab/ops/measurement.h"

#include <algorithm>
#include <functional>

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
  std::vector<Runner> runners;
  for (const Contender& c : contenders) runners.push_back({c.name, c.run});
  const LimitLoop &memory = bench.limits.memory(),
                  &products = bench.limits.products(work.arithmetic);
  if (work.bytes > 0) runners.push_back({"memory", std::cref(memory.run)});
  if (work.operations > 0) runners.push_back({"products", std::cref(products.run)});
  Measurement m;
  m.work = work;
  m.timings = race(runners, bench.rules);
  const auto take_rate = [&](const LimitLoop& loop) {
    const double rate = loop.work / m.timings.back().seconds.p50;
    m.timings.pop_back();
    return rate;
  };
  if (work.operations > 0) m.arithmetic = take_rate(products);
  if (work.bytes > 0) m.bandwidth = take_rate(memory);
  const double reading = work.bytes > 0 ? work.bytes / m.bandwidth : 0,
               computing = work.operations > 0 ? work.operations / m.arithmetic : 0;
  m.bandwidth_bound = reading >= computing;
  m.bound_seconds = std::max(reading, computing);
  return m;
}

Measurement compete(Bench& bench, const Work& work, const std::vector<Contender>& contenders,
                    double tolerance) {
  check_alike(contenders, tolerance);
  return time_in_turns(bench, work, contenders);
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
