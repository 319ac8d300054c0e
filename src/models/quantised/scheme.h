// How a checkpoint stores its quantised linears.
#pragma once

#include <cstdint>

namespace valora::models {

enum class Packing : uint8_t {
  kWords,   // compressed-tensors "pack-quantized": weight_packed, integers packed along the inputs
  kBytes,   // compressed-tensors "int-quantized": weight in I8
  kFloats,  // compressed-tensors "float-quantized": weight in F8_E4M3
  kGptq,    // qweight, packed along the inputs
  kAwq,     // qweight, packed along the outputs in a special order
  kCodes,   // bitsandbytes: weight, two codes per byte, of the flattened weight
  kRows,    // bitsandbytes: weight in I8 with SCB, the largest magnitude of each output
  kFp8,     // weight in F8_E4M3 with weight_scale_inv
};

// Which weights share a scale.
enum class ScaleScope : uint8_t {
  kTensor,
  kChannel,  // one output's weights
  kGroup,    // `group` consecutive inputs of one output
  kBlock,    // block_out consecutive outputs by block_in consecutive inputs
};

// How the inputs of a linear are rounded in each product.
enum class InputScale : uint8_t {
  kNone,    // not at all
  kToken,   // one scale per token
  kStored,  // the stored input_scale
};

struct QuantisedScheme {
  Packing packing = Packing::kWords;
  int bits = 8;
  ScaleScope scope = ScaleScope::kChannel;
  int64_t group = 0;                    // for kGroup
  int64_t block_out = 0, block_in = 0;  // for kBlock
  bool symmetric = true;                // no zero-points are stored
  bool zeros_less_one = false;  // stored zero-points are one too small (GPTQ's first format)
  InputScale inputs =
      InputScale::kNone;  // to the grid of the weights: integers, or floats of 8 bits
  bool ordered = false;   // inputs are assigned to groups in an arbitrary order (g_idx)

  bool operator==(const QuantisedScheme&) const = default;
};

}  // namespace valora::models
