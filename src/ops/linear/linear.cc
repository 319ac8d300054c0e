#include "ops/linear/linear.h"

#include <algorithm>

#include "ops/device/dispatch.h"
#include "ops/elementwise/gradient.h"
#include "ops/linear/linear_targets.h"

namespace valora::ops {
namespace {

// The kernels record no gradients; weights in panels reject an x that requires them.
Target target_for(const at::Tensor& x, const Weight& w) {
  return wants_gradient(x) ? Target::kAten : target_of(w);
}

void check_input(const at::Tensor& x, const Weight& w) {
  TORCH_CHECK(x.dim() == 2 && x.size(1) == w.in(), "linear: x is ", x.sizes(), ", the weight [",
              w.out(), ", ", w.in(), "]");
  TORCH_CHECK(x.is_contiguous() && x.scalar_type() == w.dtype(), "linear: x must be contiguous ",
              w.dtype());
  TORCH_CHECK((w.form() == WeightForm::kPlain && !w.quantised()) || !wants_gradient(x),
              "linear: gradients do not flow through packed weights");
}

// Checks the segments against the projection. LoraBatch::add() has made all other checks.
void check_lora(const at::Tensor& x, std::span<const ModuleWeight> linears, const LoraBatch& lora) {
  TORCH_CHECK(lora.token_end() <= x.size(0), "segments end at token ", lora.token_end(),
              ", but the batch has ", x.size(0));
  for (const ModuleWeight& l : linears) {
    if (!lora.touches(l.module)) continue;
    TORCH_CHECK(lora.segments().empty() || lora.format() == l.weight->format(),
                "the adapters' layout or dtype differs from the weight's");
    for (const kernels::LoraSegment& segment : lora.segments()) {
      const kernels::LoraModule* m = kernels::touched_module(segment, l.module);
      TORCH_CHECK(!m || (m->in == l.weight->in() && m->out == l.weight->out()), "an adapter of [",
                  m->out, ", ", m->in, "] on a weight of [", l.weight->out(), ", ", l.weight->in(),
                  "]");
    }
  }
}

bool same_rounding(std::span<const ModuleWeight> linears) {
  return std::ranges::all_of(linears, [&](const ModuleWeight& l) {
    return l.weight->input_rounding() == linears[0].weight->input_rounding() &&
           l.weight->multiplies_rounded() == linears[0].weight->multiplies_rounded();
  });
}

at::Tensor inputs_of(const at::Tensor& x, const Weight& w, const at::Tensor& largest = {}) {
  return w.input_rounding() && !w.multiplies_rounded()
             ? rounded_inputs(x, *w.input_rounding(), largest)
             : x;
}

// True if outputs are changed here: GPU kernels change them behind their products.
bool changes_outputs(const at::Tensor& x, std::span<const ModuleWeight> linears,
                     const LoraBatch& lora) {
  return !lora.outputs().empty() && target_for(x, *linears[0].weight) != Target::kCuda &&
         std::ranges::any_of(linears,
                             [&](const ModuleWeight& l) { return lora.changes_output(l.module); });
}

// y: float [T, out]
void change_outputs(const at::Tensor& y, const ModuleWeight& linear, const LoraBatch& lora) {
  const at::Tensor& bias = linear.weight->bias();
  for (const OutputSegment& segment : lora.outputs()) {
    const OutputChange* change = segment.adapter->output(linear.module);
    if (!change) continue;
    at::Tensor rows = y.narrow(0, segment.token_begin, segment.token_end - segment.token_begin);
    if (change->gain.defined()) {
      if (bias.defined()) rows.sub_(bias);
      rows.mul_(change->gain.to(y.device()));
      if (bias.defined()) rows.add_(bias);
    }
    if (change->shift.defined()) rows.add_(change->shift.to(y.device()), segment.coefficient);
  }
}

// The linears in float, including everything their adapters change.
std::vector<at::Tensor> changed_sums(const at::Tensor& x, const at::Tensor& inputs,
                                     std::span<const ModuleWeight> linears, const LoraBatch& lora,
                                     const at::Tensor& largest = {}) {
  const Target target = target_for(x, *linears[0].weight);
  TORCH_CHECK(!wants_gradient(x), "output changes are not supported in training");
  auto sums = target == Target::kCpu ? sums_cpu(x, inputs, linears, lora, largest)
                                     : sums_aten(x, inputs, linears, lora);
  for (size_t i = 0; i < linears.size(); ++i) change_outputs(sums[i], linears[i], lora);
  return sums;
}

}  // namespace

void check_linears(const at::Tensor& x, std::span<const ModuleWeight> linears,
                   const LoraBatch& lora) {
  TORCH_CHECK(!linears.empty() && linears.size() <= kMaxSlices, "project: ", linears.size(),
              " weights");
  for (const ModuleWeight& l : linears) {
    check_input(x, *l.weight);
    TORCH_CHECK(l.weight->form() == linears[0].weight->form(),
                "project: weights of different layouts");
  }
  check_lora(x, linears, lora);
}

std::vector<at::Tensor> project(const at::Tensor& x, std::span<const ModuleWeight> linears,
                                const LoraBatch& lora) {
  check_linears(x, linears, lora);
  if (!same_rounding(linears)) {
    std::vector<at::Tensor> ys;
    for (const ModuleWeight& l : linears) ys.push_back(linear(x, l, lora));
    return ys;
  }
  const at::Tensor inputs = inputs_of(x, *linears[0].weight);
  if (changes_outputs(x, linears, lora)) {
    std::vector<at::Tensor> ys;
    for (const at::Tensor& sums : changed_sums(x, inputs, linears, lora))
      ys.push_back(sums.to(x.scalar_type()));
    return ys;
  }
  switch (target_for(x, *linears[0].weight)) {
    case Target::kCpu: return project_cpu(x, inputs, linears, lora);
    case Target::kCuda: return project_cuda(x, inputs, linears, lora);
    case Target::kAten: break;
  }
  return project_aten(x, inputs, linears, lora);
}

at::Tensor linear(const at::Tensor& x, const ModuleWeight& linear, const LoraBatch& lora) {
  return project(x, {&linear, 1}, lora)[0];
}

at::Tensor linear(const at::Tensor& x, const Weight& w) { return linear(x, {&w}, {}); }

at::Tensor gated(const at::Tensor& x, const ModuleWeight& gate, const ModuleWeight& up,
                 const LoraBatch& lora, Gate activation) {
  const ModuleWeight both[] = {gate, up};
  check_linears(x, both, lora);
  TORCH_CHECK(gate.weight->out() == up.weight->out(), "gated: a gate of ", gate.weight->out(),
              " outputs, ", up.weight->out(), " to be gated");
  if (!same_rounding(both))
    return gate_aten(activation, linear(x, gate, lora), linear(x, up, lora));
  const at::Tensor inputs = inputs_of(x, *gate.weight);
  if (changes_outputs(x, both, lora)) {
    const std::vector<at::Tensor> sums = changed_sums(x, inputs, both, lora);
    return target_for(x, *gate.weight) == Target::kCpu
               ? gate_cpu(activation, sums[0], sums[1], x.scalar_type())
               : gate_aten(activation, sums[0], sums[1]).to(x.scalar_type());
  }
  switch (target_for(x, *gate.weight)) {
    case Target::kCpu: return gated_cpu(x, inputs, gate, up, lora, activation);
    case Target::kCuda: return gated_cuda(x, inputs, gate, up, lora, activation);
    case Target::kAten: break;
  }
  return gated_aten(x, inputs, gate, up, lora, activation);
}

at::Tensor linear_float(const at::Tensor& x, const Weight& w, const at::Tensor& largest) {
  check_input(x, w);
  const at::Tensor inputs = inputs_of(x, w, largest);
  switch (target_for(x, w)) {
    case Target::kCpu: return linear_float_cpu(inputs, w, largest);
    case Target::kCuda: return linear_float_cuda(x, inputs, {&w}, {});
    case Target::kAten: break;
  }
  return linear_float_aten(inputs, w);
}

at::Tensor linear_float(const at::Tensor& x, const ModuleWeight& linear, const LoraBatch& lora,
                        const at::Tensor& largest) {
  if (!lora.touches(linear.module) && !lora.changes_output(linear.module))
    return linear_float(x, *linear.weight, largest);
  check_linears(x, {&linear, 1}, lora);
  const at::Tensor inputs = inputs_of(x, *linear.weight, largest);
  if (target_for(x, *linear.weight) == Target::kCuda)
    return linear_float_cuda(x, inputs, linear, lora);
  return changed_sums(x, inputs, {&linear, 1}, lora, largest)[0];
}

}  // namespace valora::ops
