// Reads 8-bit floats, which are decoded.
#include <fmt/format.h>

#include "models/quantised/stored_linear.h"

namespace valora::models {
namespace {

// Returns float, in a shape that broadcasts against [out, in].
at::Tensor read_scales(LinearTensors& tensors, const std::string& part,
                       const QuantisedScheme& scheme, int64_t out, int64_t in) {
  switch (scheme.scope) {
    case ScaleScope::kTensor: {
      const at::Tensor one = tensors.take_scales(part, {{1}, {}, {1, 1}});
      return one.defined() ? one.view({1, 1}) : one;
    }
    case ScaleScope::kChannel: {
      const at::Tensor each = tensors.take_scales(part, {{out, 1}, {out}});
      return each.defined() ? each.view({out, 1}) : each;
    }
    case ScaleScope::kGroup: {
      const at::Tensor groups = tensors.take_scales(part, {{out, groups_of(scheme, in)}});
      return groups.defined() ? groups.repeat_interleave(group_of(scheme, in), 1).slice(1, 0, in)
                              : groups;
    }
    case ScaleScope::kBlock: {
      const int64_t rows = (out + scheme.block_out - 1) / scheme.block_out,
                    columns = (in + scheme.block_in - 1) / scheme.block_in;
      const at::Tensor blocks = tensors.take_scales(part, {{rows, columns}});
      if (!blocks.defined()) return blocks;
      return blocks.repeat_interleave(std::min(scheme.block_out, out), 0)
          .slice(0, 0, out)
          .repeat_interleave(std::min(scheme.block_in, in), 1)
          .slice(1, 0, in);
    }
  }
  return {};
}

}  // namespace

StoredLinear read_floats(LinearTensors& tensors, const QuantisedScheme& scheme, int64_t out,
                         int64_t in) {
  const std::string part = scheme.packing == Packing::kFp8 ? "weight_scale_inv" : "weight_scale";
  const at::Tensor stored = tensors.take("weight", {DType::kF8E4M3}, {{out, in}}),
                   scales = read_scales(tensors, part, scheme, out, in);
  // Scales of activations, which are not rounded here, and zero-points, which are not applied.
  for (const char* unread : {"weight_zero_point", "input_scale", "activation_scale"})
    if (tensors.has(unread)) tensors.read(unread);
  if (!stored.defined()) return {};
  at::Tensor values = stored.to(at::kFloat);
  if (!at::isfinite(values).all().item<bool>())
    tensors.fail("weight", "has values that are not finite");
  return {std::nullopt, values.mul_(scales)};
}

}  // namespace valora::models
