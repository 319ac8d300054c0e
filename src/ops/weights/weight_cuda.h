// Integer weights in the layout that GPU kernels read (kernels/cuda/integer_matrix.h).
#pragma once

#include <memory>
#include <utility>

#include "kernels/cuda/integer_matrix.h"
#include "ops/weights/weight.h"

namespace valora::ops {

// → the weight's bytes on the device, [1-d], and their layout. Throws c10::Error for groups that
// the layout does not support.
std::pair<at::Tensor, std::shared_ptr<const kernels::cuda::IntegerMatrix>> pack_integers_cuda(
    const QuantisedTensor& w, at::Device device);
// → float [out, in], on the device
at::Tensor unpack_cuda(const Weight& w);

}  // namespace valora::ops
