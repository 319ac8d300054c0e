#include "models/decoder/layers.h"

#include <array>

#include "ops/device/parallel.h"
#include "ops/elementwise/elementwise.h"
#include "ops/linear/grouped_linear.h"
#include "ops/weights/adjacent_weights.h"

namespace valora::models {

namespace {

const ops::Weight& in_use(const Linear& linear, const Adaptation& adaptation) {
  if (!adaptation.merged || linear.module() < 0) return linear.weight();
  const ops::Weight& merged = adaptation.merged->modules[linear.module()];
  return merged.defined() ? merged : linear.weight();
}

ops::ModuleWeight adapted(const Linear& linear, const Adaptation& adaptation) {
  return {&in_use(linear, adaptation), linear.module()};
}

void observe(std::initializer_list<const Linear*> linears, const at::Tensor& x,
             const Adaptation& adaptation) {
  if (!adaptation.observer) return;
  std::vector<int> modules;
  for (const Linear* linear : linears) modules.push_back(linear->module());
  adaptation.observer->on_input(modules, x);
}

std::vector<ops::LinearGroup> linear_groups(const at::Tensor& x,
                                            std::span<const LinearRows> groups) {
  std::vector<ops::LinearGroup> result;
  result.reserve(groups.size());
  for (const LinearRows& g : groups) {
    const Adaptation& adaptation = *g.adaptation;
    result.push_back({g.begin, g.end, adapted(*g.linear, adaptation),
                      g.up ? adapted(*g.up, adaptation) : ops::ModuleWeight(), &adaptation.lora});
    if (!adaptation.observer) continue;
    const at::Tensor rows = x.narrow(0, g.begin, g.end - g.begin);
    if (g.up)
      observe({g.linear, g.up}, rows, adaptation);
    else
      observe({g.linear}, rows, adaptation);
  }
  return result;
}

// Combines the values of all ranks, in place.
at::Tensor reduce(at::Tensor values, const Shard& shard, Communicator::Reduction reduction) {
  if (shard.of == 1) return values;
  shard.communicator->all_reduce(
      shard.rank, {values.mutable_data_ptr<float>(), static_cast<size_t>(values.numel())},
      ops::torch_parallel(), reduction);
  return values;
}

// Per token, over the inputs of all ranks: it determines the scale of a token that is rounded.
// Undefined if no token has a scale of its own.
at::Tensor largest_of_ranks(const at::Tensor& x, const ops::Weight& weight, const Shard& shard) {
  const auto& rounding = weight.input_rounding();
  if (shard.of == 1 || !rounding || rounding->scale != 0) return {};
  return reduce(ops::largest_inputs(x), shard, Communicator::Reduction::kMax);
}

}  // namespace

Linear::Linear(Weights& weights, const std::string& name, int64_t in, int64_t out, bool bias,
               int module, LinearPart part, const adapters::Partition& partition)
    : weight_(weights.linear(name, out, in, bias, part, partition)),
      module_(module),
      slice_{out, in, slice_of(partition, out, in, weights.shard().rank, weights.shard().of)} {
  if (partition.split == adapters::Split::kInputs) sums_over_ = weights.shard();
}

at::Tensor Linear::operator()(const at::Tensor& x, const Adaptation& adaptation) const {
  if (sums_over_.of > 1) return sum_of_ranks(part(x, adaptation), sums_over_).to(x.scalar_type());
  observe({this}, x, adaptation);
  return ops::linear(x, adapted(*this, adaptation), adaptation.lora);
}

// The adapters' products are partial sums as well, so they need no collective of their own.
at::Tensor Linear::part(const at::Tensor& x, const Adaptation& adaptation) const {
  observe({this}, x, adaptation);
  const ops::ModuleWeight linear = adapted(*this, adaptation);
  return ops::linear_float(x, linear, adaptation.lora,
                           largest_of_ranks(x, *linear.weight, sums_over_));
}

at::Tensor sum_of_ranks(const at::Tensor& parts, const Shard& shard) {
  return reduce(parts, shard, Communicator::Reduction::kSum);
}

std::vector<at::Tensor> project(const at::Tensor& x, std::initializer_list<const Linear*> linears,
                                const Adaptation& adaptation) {
  observe(linears, x, adaptation);
  std::array<ops::ModuleWeight, ops::kMaxSlices> slices;
  TORCH_CHECK(linears.size() <= slices.size(), "project: ", linears.size(), " linears");
  size_t count = 0;
  for (const Linear* linear : linears) slices[count++] = adapted(*linear, adaptation);
  return ops::project(x, {slices.data(), count}, adaptation.lora);
}

at::Tensor gated(const at::Tensor& x, const Linear& gate, const Linear& up,
                 const Adaptation& adaptation, ops::Gate activation) {
  observe({&gate, &up}, x, adaptation);
  return ops::gated(x, adapted(gate, adaptation), adapted(up, adaptation), adaptation.lora,
                    activation);
}

at::Tensor grouped(const at::Tensor& x, std::span<const LinearRows> groups) {
  return ops::grouped_linear(x, linear_groups(x, groups));
}

at::Tensor grouped_part(const at::Tensor& x, std::span<const LinearRows> groups) {
  const auto linears = linear_groups(x, groups);
  return ops::grouped_linear_float(
      x, linears, largest_of_ranks(x, *linears[0].linear.weight, groups[0].linear->sums_over()));
}

at::Tensor grouped_gated(const at::Tensor& x, std::span<const LinearRows> groups,
                         ops::Gate activation) {
  return ops::grouped_gated(x, linear_groups(x, groups), activation);
}

void place_adjacent_linears(std::initializer_list<Linear*> linears) {
  std::vector<ops::Weight*> weights;
  for (Linear* linear : linears) weights.push_back(&linear->weight());
  ops::place_adjacent(weights);
}

RmsNorm::RmsNorm(Weights& weights, const std::string& name, int64_t width, double eps,
                 double offset)
    : weight_(weights.on_each(name + ".weight", {width})), eps_(eps), offset_(offset) {}

at::Tensor RmsNorm::operator()(const at::Tensor& x) const {
  return ops::rms_norm(x, weight_, eps_, offset_);
}

at::Tensor RmsNorm::add_and_norm(at::Tensor& x, const at::Tensor& delta) const {
  return ops::add_rms_norm(x, delta, weight_, eps_, offset_);
}

LayerNorm::LayerNorm(Weights& weights, const std::string& name, int64_t width, double eps)
    : weight_(weights.get(name + ".weight", {width})),
      bias_(weights.get(name + ".bias", {width})),
      eps_(eps) {}

at::Tensor LayerNorm::operator()(const at::Tensor& x) const {
  return at::layer_norm(x, {x.size(-1)}, weight_, bias_, eps_);
}

}  // namespace valora::models
