// Instantiates all kernels with the Vectors of one instruction set. Include it only from a source
// file that is compiled for that instruction set.
#pragma once

#include "kernels/cpu/attention/attention_kernels.h"
#include "kernels/cpu/isa/kernel_set.h"
#include "kernels/cpu/merge/merge_kernels.h"
#include "kernels/cpu/product/product_kernels.h"

namespace valora::kernels {
namespace {

template <typename V>
consteval KernelSet<typename V::Element> kernels_of() {
  return {multiply_product<V>, add_values<V>, update_softmax<V>, merge_block<V>};
}

}  // namespace
}  // namespace valora::kernels
