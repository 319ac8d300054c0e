// Definitions shared by all CUDA kernels. The headers of this folder are plain C++, so that code
// compiled without nvcc can call the kernels.
//
// Launches are asynchronous on a stream, allocate nothing, do not synchronise, and may be captured
// into a CUDA graph. Arguments are not checked unless a header says so. Pointers are to device
// memory unless a header says "host".
#pragma once

#include <cstddef>
#include <cstdint>

namespace valora::kernels::cuda {

using Stream = void*;  // cudaStream_t
using Status = int;    // cudaError_t; 0: the launch was accepted

enum class Dtype : uint8_t { kFloat, kBf16, kFp16 };

constexpr size_t size_of(Dtype dtype) { return dtype == Dtype::kFloat ? 4 : 2; }

// Rows of a step's tokens, each contiguous.
struct TokenRows {
  const void* data = nullptr;
  int64_t token_stride = 0;  // elements
};

}  // namespace valora::kernels::cuda
