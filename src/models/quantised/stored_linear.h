// The weights of one quantised linear, read from its tensors.
#pragma once

#include <ATen/ATen.h>

#include <optional>

#include "adapters/partition.h"
#include "models/quantised/linear_tensors.h"
#include "models/quantised/scheme.h"
#include "ops/linear/input_rounding.h"
#include "ops/weights/quantised_tensor.h"

namespace valora::models {

// The exact stored weights: as integers, or as float values if a QuantisedTensor cannot hold them
// (8-bit floats, groups with reordered inputs). Neither if nothing is read.
struct StoredLinear {
  std::optional<ops::QuantisedTensor> integers;
  at::Tensor values;  // float [out, in]
  // The format of the integers, set even if nothing is read; inputs are then assumed to be in
  // order.
  std::optional<ops::Quantisation> form = {};
  // The integers have fp32 scales, or minimums instead of zero-points.
  bool float_scales = false, has_minimums = false;
  std::optional<ops::InputRounding> input_rounding = {};
  at::Tensor decoded() const { return integers ? integers->decoded() : values; }
  // The slice of the values. The linear must have been read.
  StoredLinear part(const adapters::MatrixSlice& slice) const;
};

// Throws a LoadError that names the tensor.
StoredLinear read_stored_linear(LinearTensors& tensors, const QuantisedScheme& scheme, int64_t out,
                                int64_t in);

// Readers by Packing. Tensors: compressed-tensors' weight_packed int32 [out, in / n] or weight int8
// [out, in], weight_scale [out, groups], weight_zero_point, weight_shape, weight_g_idx [in]; GPTQ's
// qweight [in / n, out], qzeros [groups, out / n], scales [groups, out], g_idx [in]; AWQ's qweight
// [in, out / 8], qzeros [groups, out / 8], scales [groups, out].
StoredLinear read_compressed_words(LinearTensors& tensors, const QuantisedScheme& scheme,
                                   int64_t out, int64_t in);
StoredLinear read_compressed_bytes(LinearTensors& tensors, const QuantisedScheme& scheme,
                                   int64_t out, int64_t in);
StoredLinear read_gptq(LinearTensors& tensors, const QuantisedScheme& scheme, int64_t out,
                       int64_t in);
StoredLinear read_awq(LinearTensors& tensors, const QuantisedScheme& scheme, int64_t out,
                      int64_t in);
// weight: bytes [out * in / 2, 1], with weight.absmax, weight.quant_map and weight.quant_state.
StoredLinear read_codes(LinearTensors& tensors, const QuantisedScheme& scheme, int64_t out,
                        int64_t in);
// weight int8 [out, in], SCB [out], weight_format.
StoredLinear read_rows(LinearTensors& tensors, const QuantisedScheme& scheme, int64_t out,
                       int64_t in);
// weight F8_E4M3 [out, in] with weight_scale or weight_scale_inv.
StoredLinear read_floats(LinearTensors& tensors, const QuantisedScheme& scheme, int64_t out,
                         int64_t in);

// Applies the group assignment order[i], [in], of each input. If order[i] == i / group, the result
// is the QuantisedTensor itself, else float values.
StoredLinear in_order(ops::QuantisedTensor parts, const at::Tensor& order);

// The given rows of the tensor, in order: a view if they are adjacent.
at::Tensor rows_of(const at::Tensor& tensor, const adapters::Shares& rows);

// The number of inputs that share a scale, and the number of such groups.
int64_t group_of(const QuantisedScheme& scheme, int64_t in);
int64_t groups_of(const QuantisedScheme& scheme, int64_t in);
// Fails for `part` unless the group size divides the inputs.
void check_groups(const LinearTensors& tensors, const QuantisedScheme& scheme, const char* part,
                  int64_t in);

}  // namespace valora::models
