// Reads compressed-tensors integers.
#include <fmt/format.h>

#include "models/quantised/stored_linear.h"
#include "models/quantised/unpack.h"

namespace valora::models {
namespace {

// Returns float [out, groups].
at::Tensor read_scales(LinearTensors& tensors, const QuantisedScheme& scheme, int64_t out,
                       int64_t in) {
  const int64_t groups = groups_of(scheme, in);
  const bool whole = scheme.scope == ScaleScope::kTensor;
  const at::Tensor stored = whole         ? tensors.take_scales("weight_scale", {{1}, {}, {1, 1}})
                            : groups == 1 ? tensors.take_scales("weight_scale", {{out, 1}, {out}})
                                          : tensors.take_scales("weight_scale", {{out, groups}});
  if (!stored.defined()) return stored;
  return whole ? stored.view({1, 1}).expand({out, 1}).contiguous() : stored.view({out, groups});
}

// Returns uint8 [out, groups], with the same offset as the values. Older releases store plain
// zero-points, newer ones pack them along the outputs.
at::Tensor read_zeros(LinearTensors& tensors, const QuantisedScheme& scheme, int64_t out,
                      int64_t in) {
  constexpr char kPart[] = "weight_zero_point";
  const int64_t groups = groups_of(scheme, in), n = 32 / scheme.bits;
  const int offset = 1 << (scheme.bits - 1);
  const at::Tensor middle = at::full({out, groups}, offset, at::kByte);
  if (scheme.symmetric && !tensors.has(kPart)) return middle;
  const TensorView* view = tensors.find(kPart);
  at::Tensor zeros;
  if (view && view->dtype == DType::kI32) {
    const at::Tensor words = tensors.take(kPart, {DType::kI32}, {{(out + n - 1) / n, groups}});
    if (words.defined()) zeros = unpack_along_rows(words, scheme.bits, out);
  } else {
    const bool whole = scheme.scope == ScaleScope::kTensor;
    const at::Tensor stored =
        whole         ? tensors.take(kPart, {DType::kI8, DType::kI32}, {{1}, {}, {1, 1}})
        : groups == 1 ? tensors.take(kPart, {DType::kI8, DType::kI32}, {{out, 1}, {out}})
                      : tensors.take(kPart, {DType::kI8, DType::kI32}, {{out, groups}});
    if (stored.defined()) {
      zeros = stored.to(at::kShort) + offset;
      if (zeros.lt(0).logical_or(zeros.ge(2 * offset)).any().item<bool>())
        tensors.fail(kPart, fmt::format("has values outside of {} bits", scheme.bits));
      zeros = zeros.to(at::kByte);
      zeros = whole ? zeros.view({1, 1}).expand({out, 1}).contiguous() : zeros.view({out, groups});
    }
  }
  // The reference ignores the zero-points of a symmetric scheme.
  if (zeros.defined() && scheme.symmetric && !at::equal(zeros, middle))
    tensors.fail(kPart, "is not zero, but the configuration says that the weights are symmetric");
  return zeros;
}

// The group of each input; undefined if groups are consecutive.
at::Tensor read_order(LinearTensors& tensors, const QuantisedScheme& scheme, int64_t in) {
  constexpr char kPart[] = "weight_g_idx";
  if (!tensors.has(kPart)) return {};
  const at::Tensor order = tensors.take(kPart, {DType::kI32, DType::kI64}, {{in}});
  if (!order.defined() || order.eq(-1).all().item<bool>()) return {};
  const int64_t groups = groups_of(scheme, in), group = group_of(scheme, in);
  if (order.lt(0).logical_or(order.ge(groups)).any().item<bool>())
    tensors.fail(kPart, fmt::format("has groups outside of the {} that have scales", groups));
  // The reference sorts the inputs by group and splits them every `group` inputs.
  const at::Tensor counts = at::bincount(order.to(at::kLong), {}, groups);
  if (in % group != 0 || counts.ne(group).any().item<bool>())
    tensors.fail(kPart, fmt::format("does not give each group its {} inputs", group));
  return order;
}

StoredLinear assemble(LinearTensors& tensors, const QuantisedScheme& scheme,
                      const at::Tensor& values, int64_t out, int64_t in) {
  ops::QuantisedTensor made{.values = values,
                            .bits = scheme.bits,
                            .scales = read_scales(tensors, scheme, out, in),
                            .zeros = read_zeros(tensors, scheme, out, in),
                            .group = group_of(scheme, in)};
  const at::Tensor order = read_order(tensors, scheme, in);
  if (!values.defined()) return {};
  if (order.defined()) return in_order(std::move(made), order);
  return {std::move(made), {}};
}

}  // namespace

StoredLinear read_compressed_words(LinearTensors& tensors, const QuantisedScheme& scheme,
                                   int64_t out, int64_t in) {
  const int64_t n = 32 / scheme.bits;
  const at::Tensor words = tensors.take("weight_packed", {DType::kI32}, {{out, (in + n - 1) / n}});
  check_groups(tensors, scheme, "weight_packed", in);
  const at::Tensor shape = tensors.take("weight_shape", {DType::kI64, DType::kI32}, {{2}});
  if (shape.defined() && !at::equal(shape.to(at::kLong), at::tensor({out, in}, at::kLong)))
    tensors.fail("weight_shape",
                 fmt::format("is not [{}, {}], which the configuration requires", out, in));
  return assemble(tensors, scheme,
                  words.defined() ? unpack_along_columns(words, scheme.bits, in) : at::Tensor(),
                  out, in);
}

StoredLinear read_compressed_bytes(LinearTensors& tensors, const QuantisedScheme& scheme,
                                   int64_t out, int64_t in) {
  const at::Tensor stored = tensors.take("weight", {DType::kI8}, {{out, in}});
  check_groups(tensors, scheme, "weight", in);
  at::Tensor values;
  if (stored.defined()) {
    const int offset = 1 << (scheme.bits - 1);
    if (scheme.bits < 8 && stored.lt(-offset).logical_or(stored.ge(offset)).any().item<bool>())
      tensors.fail("weight", fmt::format("has values outside of {} bits", scheme.bits));
    values = (stored.view(at::kByte) + offset).contiguous();  // modulo 256
  }
  return assemble(tensors, scheme, values, out, in);
}

}  // namespace valora::models
