#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/cuda/bench/timing.h"
#include "kernels/cuda/delta.h"
#include "kernels/cuda/testing/values.h"

namespace valora::kernels::cuda {
namespace {

constexpr Dtype kDtype = Dtype::kBf16;

struct DeltaModel {
  const char* name;
  int key_heads, value_heads, dim;
  StateShape shape() const {
    return {1, int64_t{2 * key_heads + value_heads} * dim, 4, key_heads, value_heads, dim, dim, 2};
  }
};
// Qwen3.5's smallest and a middle one.
constexpr DeltaModel kDeltaModels[] = {{"0.8B", 16, 16, 128}, {"9B", 16, 32, 128}};

// The states of `sequences` for each of some layers: a part per block, and tables for each layer.
class LayerStates {
 public:
  LayerStates(const StateShape& s, int sequences, int rows, int layers)
      : parts_(static_cast<int32_t>(s.taps - 1 + s.value_heads)),
        block_bytes_(std::max(head_floats(s) * 4, s.channels * 2)),
        pool_(static_cast<size_t>(block_bytes_) * parts_ * sequences * layers),
        places_(places()) {
    require(cudaMemset(pool_.data(), 0, pool_.size()), "cudaMemset");
    std::vector<int32_t> blocks(static_cast<size_t>(parts_) * sequences * layers);
    std::iota(blocks.begin(), blocks.end(), 0);
    for (int layer = 0; layer < layers; ++layer) {
      std::vector<QuerySpan> spans;
      std::vector<StateSpan> states;
      for (int i = 0; i < sequences; ++i) {
        const int32_t* list = &blocks[static_cast<size_t>(layer * sequences + i) * parts_];
        spans.push_back({int64_t{i} * rows, rows});
        states.push_back({list, list});
      }
      const StatePlan plan =
          plan_states(spans.data(), states.data(), spans.size(), int64_t{sequences} * rows, parts_);
      spans_.emplace_back(plan.spans);
      span_of_.emplace_back(plan.span_of);
      blocks_.emplace_back(plan.blocks);
    }
    count_ = sequences, tokens_ = sequences * rows;
  }
  StatePool pool() const { return {pool_.data(), block_bytes_, places_.data()}; }
  StateTables tables(int layer) const {
    return {spans_[layer].data(), span_of_[layer].data(), blocks_[layer].data(), count_, tokens_};
  }

 private:
  std::vector<StatePlace> places() const {
    std::vector<StatePlace> places;
    for (int32_t part = 0; part < parts_; ++part) places.push_back({part, 0});
    return places;
  }

  int32_t parts_;
  int64_t block_bytes_;
  DeviceMemory pool_;
  DeviceTable<StatePlace> places_;
  std::vector<DeviceTable<DeviceStateSpan>> spans_;
  std::vector<DeviceTable<int32_t>> span_of_, blocks_;
  int32_t count_ = 0, tokens_ = 0;
};

void bench_step(const DeltaModel& m, int sequences, int rows, const Figures& figures) {
  const StateShape s = m.shape();
  const int64_t tokens = int64_t{sequences} * rows, values = s.value_heads * s.value_dim;
  const int layers = rotations(static_cast<size_t>(s.bytes()) * sequences, 64);
  const LayerStates states(s, sequences, rows, layers);
  Random random(1);
  const auto of = [&](int64_t count, Dtype dtype) {
    return DeviceValues(random.values(static_cast<size_t>(count), dtype), dtype);
  };
  const DeviceValues x = of(tokens * s.channels, kDtype), z = of(tokens * values, kDtype),
                     rates = of(tokens * s.value_heads, kDtype),
                     weights = of(s.taps * s.channels, kDtype), norm = of(s.value_dim, kDtype),
                     heads = of(s.value_heads, Dtype::kFloat),
                     qkv(static_cast<size_t>(tokens * s.channels), kDtype),
                     out(static_cast<size_t>(tokens * values), kDtype);
  const auto* of_heads = static_cast<const float*>(heads.data());
  const TokenRows inputs{x.data(), s.channels}, of_rates{rates.data(), s.value_heads};
  const DeltaRows delta{inputs,   qkv.data(), {z.data(), values}, of_rates, of_rates,
                        of_heads, of_heads,   norm.data(),        1e-6f};
  const double seconds = seconds_per_launch(
      [&](int i, Stream stream) {
        const StateTables tables = states.tables(i);
        const Status status = short_conv(kDtype, s, states.pool(), inputs, weights.data(),
                                         qkv.data(), tables, stream);
        return status != 0
                   ? status
                   : gated_delta(kDtype, s, states.pool(), delta, out.data(), tables, stream);
      },
      layers);
  const double bytes = 2.0 * static_cast<double>(s.bytes()) * sequences +
                       2.0 * static_cast<double>(tokens * (3 * s.channels + 2 * values));
  print_result("short_conv and gated_delta " + std::string(m.name) + " sequences " +
                   std::to_string(sequences) + " of " + std::to_string(rows),
               seconds, bytes, 0, figures);
}

}  // namespace

void bench_delta(const Figures& figures) {
  for (const DeltaModel& m : kDeltaModels) {
    for (const int sequences : {1, 8, 32}) bench_step(m, sequences, 1, figures);
    for (const int sequences : {1, 4}) bench_step(m, sequences, 512, figures);
  }
}

}  // namespace valora::kernels::cuda
