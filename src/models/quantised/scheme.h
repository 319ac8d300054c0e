// How a checkpoint stores the weights of its quantised linears.
#pragma once

#include <cstdint>

namespace valora::models {

enum class Packing : uint8_t {
  kWords,  // compressed-tensors "pack-quantized": weight_packed, words of integers along the inputs
  kBytes,  // compressed-tensors "int-quantized": weight in I8
  kFloats,  // compressed-tensors "float-quantized": weight in F8_E4M3
  kGptq,    // qweight, words along the inputs
  kAwq,     // qweight, words along the outputs in an order of their own
  kCodes,   // bitsandbytes: weight, bytes of two codes of the flattened weight
  kFp8,     // weight in F8_E4M3 with weight_scale_inv
};

// Which weights have a scale in common.
enum class ScaleScope : uint8_t {
  kTensor,
  kChannel,  // those of an output
  kGroup,    // those of an output and `group` inputs in succession
  kBlock,    // those of block_out outputs and block_in inputs in succession
};

// How the inputs of a linear are rounded in each product.
enum class InputScale : uint8_t {
  kNone,    // not at all
  kToken,   // a scale per token
  kStored,  // input_scale
};

struct QuantisedScheme {
  Packing packing = Packing::kWords;
  int bits = 8;
  ScaleScope scope = ScaleScope::kChannel;
  int64_t group = 0;                    // of kGroup
  int64_t block_out = 0, block_in = 0;  // of kBlock
  bool symmetric = true;                // no zero-points are stored
  bool zeros_less_one = false;          // GPTQ's first format stores zero-points minus one
  InputScale inputs =
      InputScale::kNone;  // to the grid of the weights: integers, or floats of 8 bits
  bool ordered = false;   // groups are of inputs in an order of their own (g_idx)

  bool operator==(const QuantisedScheme&) const = default;
};

}  // namespace valora::models
