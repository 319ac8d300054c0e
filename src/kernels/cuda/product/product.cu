// Chooses the kernel for a product.
#include "kernels/cuda/product/arguments.cuh"

namespace valora::kernels::cuda {
namespace {

// call: with slices of one kind.
Status product_of_kind(const IntegerCall& call, Stream stream) {
  if (call.dtype == Dtype::kFloat || call.in % 8 != 0 || call.x_stride % 8 != 0 ||
      !aligned16({call.x}))
    return integer_plain(call, stream);
  return call.tokens <= kMostRowTokens ? integer_rows(call, stream) : integer_tiles(call, stream);
}

bool same_kind(const IntegerMatrix& a, const IntegerMatrix& b) {
  return a.bits == b.bits && a.minimums == b.minimums;
}

}  // namespace

Status integer_product(const IntegerCall& call, Stream stream) {
  if (call.tokens == 0) return cudaSuccess;
  bool done[kMaxIntegerSlices] = {};
  for (int first = 0; first < call.slice_count; ++first) {
    if (done[first]) continue;
    IntegerCall of_kind = call;
    of_kind.slice_count = 0;
    for (int i = first; i < call.slice_count; ++i) {
      if (done[i] || !same_kind(call.slices[i].w, call.slices[first].w)) continue;
      of_kind.slices[of_kind.slice_count++] = call.slices[i];
      done[i] = true;
    }
    if (const Status status = product_of_kind(of_kind, stream); status != 0) return status;
  }
  return cudaSuccess;
}

}  // namespace valora::kernels::cuda
