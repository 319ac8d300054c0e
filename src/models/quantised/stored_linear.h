// The weights of one quantised linear, read from its tensors.
#pragma once

#include <ATen/ATen.h>

#include <optional>

#include "adapters/partition.h"
#include "models/quantised/linear_tensors.h"
#include "models/quantised/scheme.h"
#include "ops/input_rounding.h"
#include "ops/quantise.h"
#include "ops/quantised_tensor.h"

namespace valora::models {

// Exactly what the checkpoint says: as integers, or, where these have no QuantisedTensor (floats
// of 8 bits, groups of inputs in another order), as values in float. Neither if nothing is read.
struct StoredLinear {
  std::optional<ops::QuantisedTensor> integers;
  at::Tensor values;  // float [out, in]
  // Of the integers, also if nothing is read; their order is then taken for granted.
  std::optional<ops::Quantisation> form = {};
  // Whether the integers have scales of fp32, and minimums instead of zero-points.
  bool float_scales = false, has_minimums = false;
  std::optional<ops::InputRounding> input_rounding = {};
  at::Tensor decoded() const { return integers ? integers->decoded() : values; }
  // The same values of some outputs and inputs. There must be values.
  StoredLinear part(const adapters::MatrixSlice& slice) const;
};

// Throws LoadError, which names the tensor.
StoredLinear read_stored_linear(LinearTensors& tensors, const QuantisedScheme& scheme, int64_t out,
                                int64_t in);

// The readers, by Packing. Tensors: compressed-tensors' weight_packed int32 [out, in / n] or weight
// int8 [out, in], weight_scale [out, groups], weight_zero_point, weight_shape, weight_g_idx [in];
// GPTQ's qweight [in / n, out], qzeros [groups, out / n], scales [groups, out], g_idx [in]; AWQ's
// qweight [in, out / 8], qzeros [groups, out / 8], scales [groups, out].
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
// weight F8_E4M3 [out, in] with weight_scale or weight_scale_inv.
StoredLinear read_floats(LinearTensors& tensors, const QuantisedScheme& scheme, int64_t out,
                         int64_t in);

// Integers whose groups are those of order[i], [in], for each input. With order[i] == i / group it
// is a QuantisedTensor of these parts, else values in float.
StoredLinear in_order(ops::QuantisedTensor parts, const at::Tensor& order);

// The inputs that share a scale, and how many such groups there are.
int64_t group_of(const QuantisedScheme& scheme, int64_t in);
int64_t groups_of(const QuantisedScheme& scheme, int64_t in);
// Fails for `part` unless groups divide the inputs.
void check_groups(const LinearTensors& tensors, const QuantisedScheme& scheme, const char* part,
                  int64_t in);

}  // namespace valora::models
