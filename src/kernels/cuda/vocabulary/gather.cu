#include "kernels/cuda/device/factor.cuh"
#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/vocabulary.h"

namespace valora::kernels::cuda {
namespace {

constexpr int kThreads = 128;

// Word: what a thread copies at once; `words` of them are a row. A thread block copies a row.
template <typename Word>
__global__ void __launch_bounds__(kThreads)
    gather_kernel(DeviceLoraFactor matrix, int words, const int64_t* rows, Word* out) {
  wait_for_earlier_launch();
  const Word* from = factor_row<Word>(matrix, static_cast<int>(rows[blockIdx.x]), words);
  Word* to = out + static_cast<int64_t>(blockIdx.x) * words;
  for (int i = threadIdx.x; i < words; i += kThreads) to[i] = from[i];
}

template <typename Word>
Status gather(const DeviceLoraFactor& matrix, int64_t row_bytes, const int64_t* rows, int64_t count,
              void* out, Stream stream) {
  return launch(gather_kernel<Word>, static_cast<unsigned>(count), kThreads, 0, stream, matrix,
                static_cast<int>(row_bytes / static_cast<int64_t>(sizeof(Word))), rows,
                static_cast<Word*>(out));
}

}  // namespace

Status gather_rows(Dtype dtype, const DeviceLoraFactor& matrix, int32_t width, const int64_t* rows,
                   int64_t count, void* out, Stream stream) {
  if (count == 0) return cudaSuccess;
  const int64_t bytes = width * static_cast<int64_t>(size_of(dtype));
  return bytes % 16 == 0 ? gather<uint4>(matrix, bytes, rows, count, out, stream)
                         : gather<uint16_t>(matrix, bytes, rows, count, out, stream);
}

}  // namespace valora::kernels::cuda
