// Instantiates all kernels with the Vectors of one instruction set. Include only from a source file
// compiled for that instruction set.
#pragma once

#include "kernels/cpu/attention/attention_kernels.h"
#include "kernels/cpu/attention/byte_attention_kernels.h"
#include "kernels/cpu/isa/isa_kernels.h"
#include "kernels/cpu/merge/merge_kernels.h"
#include "kernels/cpu/product/byte_kernels.h"
#include "kernels/cpu/product/integer_kernels.h"
#include "kernels/cpu/product/product_kernels.h"

namespace valora::kernels {
namespace {

// I: the Vectors for products with integer weights. Without bf16 instructions, these are the
// Vectors of float: inputs are then widened once, not in every tile.
template <typename V, typename I = V>
consteval KernelSet<typename V::Element> kernels_of() {
  return {.multiply = multiply_product<V>,
          .add_values = add_values<V>,
          .update_softmax = update_softmax<V>,
          .merge = merge_block<V>,
          .multiply_integers = multiply_integers_on<I>,
          .decode_integers = decode_integers_on<I>,
          .float_inputs = sizeof(typename I::Element) == sizeof(float),
          .integer_offsets = kIntegerOffsets<I>,
          .integer_rows = kRegisterRows<I>};
}

}  // namespace
}  // namespace valora::kernels
