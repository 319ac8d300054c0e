#include "generator/train/adapter_parameters.h"

#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>

#include "models/weights/weights.h"

namespace valora::generator {
namespace {

constexpr char kPrefix[] = "base_model.model.";

bool begins_at_zero(const ParameterSlot& slot) { return slot.name.ends_with(".lora_B.weight"); }

}  // namespace

void AdapterParameters::add_slot(std::string name, int64_t rows, int64_t columns) {
  const int64_t offset = slots_.empty() ? 0 : slots_.back().offset + slots_.back().size();
  slots_.push_back({kPrefix + std::move(name), offset, rows, columns});
}

AdapterParameters::AdapterParameters(AdapterShape shape, const adapters::ModuleTable& table,
                                     at::ScalarType compute, at::Device device, uint64_t seed)
    : shape_(std::move(shape)) {
  for (const int index : shape_.modules) {
    const adapters::Module& module = table.modules()[index];
    add_slot(module.name + ".lora_A.weight", shape_.rank, module.in);
    add_slot(module.name + ".lora_B.weight", module.out, shape_.rank);
  }
  const size_t low_rank_slots = slots_.size();
  for (const HeadShape& head : shape_.heads)
    add_slot(head.name + ".weight", static_cast<int64_t>(head.labels.size()), table.hidden_size());
  const int64_t total = slots_.empty() ? 0 : slots_.back().offset + slots_.back().size();
  const int64_t heads_at = low_rank_slots < slots_.size() ? slots_[low_rank_slots].offset : total;

  const auto fp32 = at::TensorOptions().dtype(at::kFloat);
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  values_ = at::zeros({total}, fp32);
  for (const ParameterSlot& slot : slots_) {
    const double bound = 1 / std::sqrt(static_cast<double>(slot.columns));
    if (!begins_at_zero(slot))
      values_.narrow(0, slot.offset, slot.size()).uniform_(-bound, bound, generator);
  }
  values_ = values_.to(device);
  gradient_ = at::zeros_like(values_);
  const auto leaves = [&](int64_t offset, int64_t size, at::ScalarType dtype) {
    const auto options = at::TensorOptions().dtype(dtype).device(device);
    return Leaves{at::zeros({size}, options), at::zeros({size}, options), offset};
  };
  low_rank_ = leaves(0, heads_at, compute);
  wide_ = leaves(heads_at, total - heads_at, at::kFloat);

  weights_ = ops::AdapterWeights(table.modules().size());
  for (size_t i = 0; i < shape_.modules.size(); ++i)
    weights_.set(shape_.modules[i],
                 {ops::Weight::plain(leaf(low_rank_, slots_[2 * i])),
                  ops::Weight::plain(leaf(low_rank_, slots_[2 * i + 1]))},
                 static_cast<float>(shape_.scale()));
  for (size_t i = low_rank_slots; i < slots_.size(); ++i) heads_.push_back(leaf(wide_, slots_[i]));
  refresh();
}

// A leaf whose gradient accumulates in its part of the common gradient.
at::Tensor AdapterParameters::leaf(const Leaves& leaves, const ParameterSlot& slot) const {
  const auto view = [&](const at::Tensor& all) {
    return all.narrow(0, slot.offset - leaves.offset, slot.size()).view({slot.rows, slot.columns});
  };
  at::Tensor values = view(leaves.values).detach().set_requires_grad(true);
  values.mutable_grad() = view(leaves.gradient);
  return values;
}

void AdapterParameters::refresh() {
  const c10::NoGradGuard no_gradients;
  for (const Leaves* leaves : {&low_rank_, &wide_})
    leaves->values.copy_(values_.narrow(0, leaves->offset, leaves->values.numel()));
}

void AdapterParameters::collect() {
  const c10::NoGradGuard no_gradients;
  for (const Leaves* leaves : {&low_rank_, &wide_}) {
    gradient_.narrow(0, leaves->offset, leaves->gradient.numel()).add_(leaves->gradient);
    leaves->gradient.zero_();
  }
}

Status AdapterParameters::assign(const adapters::AdapterSpec& spec,
                                 const adapters::ModuleTable& modules) {
  const c10::NoGradGuard no_gradients;
  const auto differs = [&](const std::string& what) {
    return unprocessable(spec.path + " is not the adapter to be trained: " + what, spec.path);
  };
  // If the values have a lower rank, the additional rows of A keep their random values and the
  // additional columns of B are zero, so the product is unchanged.
  const auto put = [&](const ParameterSlot& slot, const TensorView& view) {
    at::Tensor values = values_.narrow(0, slot.offset, slot.size()).view({slot.rows, slot.columns});
    if (begins_at_zero(slot)) values.zero_();
    values.narrow(0, 0, view.shape[0]).narrow(1, 0, view.shape[1]).copy_(models::tensor_of(view));
  };
  if (spec.invocation != shape_.invocation) return differs("its invocation");
  if (spec.targets.size() != shape_.modules.size())
    return differs("it adapts " + std::to_string(spec.targets.size()) + " linears");
  for (size_t i = 0; i < spec.targets.size(); ++i) {
    const adapters::LoraTarget& target = spec.targets[i];
    if (target.module != shape_.modules[i] || target.rank > shape_.rank ||
        std::abs(target.scale - shape_.scale()) > 1e-6 * shape_.scale())
      return differs(modules.modules()[target.module].name + " has rank " +
                     std::to_string(target.rank));
    put(slots_[2 * i], target.a);
    put(slots_[2 * i + 1], target.b);
  }
  for (size_t i = 0; i < shape_.heads.size(); ++i) {
    const auto found =
        std::ranges::find(spec.heads, shape_.heads[i].name, &adapters::TaskHead::name);
    if (found == spec.heads.end()) continue;
    if (found->labels != shape_.heads[i].labels)
      return differs("its head " + found->name + " has other labels");
    put(slots_[2 * shape_.modules.size() + i], found->weight);
  }
  refresh();
  return {};
}

}  // namespace valora::generator
