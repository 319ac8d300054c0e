// Reads GPTQ and AWQ: packed integers with one row per input.
#include <fmt/format.h>

#include "models/quantised/stored_linear.h"
#include "models/quantised/unpack.h"

namespace valora::models {
namespace {

void check_sizes(LinearTensors& tensors, const QuantisedScheme& scheme, int64_t out, int64_t in,
                 bool words_of_inputs) {
  const int64_t n = 32 / scheme.bits;
  if (out % n != 0)
    tensors.fail("qzeros",
                 fmt::format("cannot hold zero-points of {} outputs: words have {}", out, n));
  if (words_of_inputs && in % n != 0)
    tensors.fail("qweight", fmt::format("cannot hold {} inputs: words have {}", in, n));
}

// GPTQ's first format stores zero-points minus one. If adding it back overflows, readers differ:
// some wrap to 0, some do not, some carry into the neighbour.
at::Tensor plus_one(LinearTensors& tensors, const at::Tensor& zeros, int bits) {
  if (zeros.eq((1 << bits) - 1).any().item<bool>())
    tensors.fail("qzeros",
                 fmt::format("has a zero-point of {} less one, which readers of checkpoint_format "
                             "\"gptq\" read differently; store it as \"gptq_v2\"",
                             1 << bits));
  return zeros + 1;
}

// Returns int32 [in]; undefined if the folder has none.
at::Tensor gptq_order(LinearTensors& tensors, const QuantisedScheme& scheme, int64_t in) {
  if (!tensors.has("g_idx") && !scheme.ordered) return {};
  const at::Tensor order = tensors.take("g_idx", {DType::kI32, DType::kI64}, {{in}});
  const int64_t groups = groups_of(scheme, in);
  if (order.defined() && order.lt(0).logical_or(order.ge(groups)).any().item<bool>())
    tensors.fail("g_idx", fmt::format("has groups outside of the {} that have scales", groups));
  return order;
}

// [groups, out] → [out, groups]
at::Tensor turned(const at::Tensor& tensor) { return tensor.t().contiguous(); }

}  // namespace

StoredLinear read_gptq(LinearTensors& tensors, const QuantisedScheme& scheme, int64_t out,
                       int64_t in) {
  const int64_t n = 32 / scheme.bits, groups = groups_of(scheme, in);
  check_sizes(tensors, scheme, out, in, true);
  const at::Tensor words = tensors.take("qweight", {DType::kI32}, {{in / n, out}}),
                   zeros = tensors.take("qzeros", {DType::kI32}, {{groups, out / n}}),
                   scales = tensors.take_scales("scales", {{groups, out}}),
                   order = gptq_order(tensors, scheme, in);
  if (!words.defined()) return {};
  at::Tensor points = unpack_along_columns(zeros, scheme.bits, out);
  if (scheme.zeros_less_one) points = plus_one(tensors, points, scheme.bits);
  ops::QuantisedTensor made{.values = turned(unpack_along_rows(words, scheme.bits, in)),
                            .bits = scheme.bits,
                            .scales = turned(scales),
                            .zeros = turned(points),
                            .group = group_of(scheme, in)};
  if (order.defined()) return in_order(std::move(made), order);
  return {std::move(made), {}};
}

StoredLinear read_awq(LinearTensors& tensors, const QuantisedScheme& scheme, int64_t out,
                      int64_t in) {
  const int64_t n = 32 / scheme.bits, groups = groups_of(scheme, in);
  check_sizes(tensors, scheme, out, in, false);
  check_groups(tensors, scheme, "qweight", in);
  const at::Tensor words = tensors.take("qweight", {DType::kI32}, {{in, out / n}}),
                   zeros = tensors.take("qzeros", {DType::kI32}, {{groups, out / n}}),
                   scales = tensors.take_scales("scales", {{groups, out}});
  if (!words.defined()) return {};
  // The position of each of eight outputs within its word, from the lowest bits.
  const at::Tensor places = at::tensor({0, 4, 1, 5, 2, 6, 3, 7}, at::kLong);
  const auto unpacked = [&](const at::Tensor& packed) {
    const at::Tensor values = unpack_along_columns(packed, scheme.bits, out);
    return turned(
        values.view({values.size(0), out / n, n}).index_select(2, places).view(values.sizes()));
  };
  ops::QuantisedTensor made{.values = unpacked(words),
                            .bits = scheme.bits,
                            .scales = turned(scales),
                            .zeros = unpacked(zeros),
                            .group = group_of(scheme, in)};
  return {std::move(made), {}};
}

}  // namespace valora::models
