#include "kernels/cuda/testing/device_memory.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace valora::kernels::cuda {
namespace {

constexpr int kPoison = 0xff, kGuardValue = 0xa5;

}  // namespace

void require(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::printf("FATAL %s: %s (%s)\n", what, cudaGetErrorName(status), cudaGetErrorString(status));
  std::fflush(stdout);
  std::_Exit(3);
}

DeviceMemory::DeviceMemory(size_t bytes, size_t shift) : bytes_(bytes), shift_(shift) {
  require(cudaMalloc(reinterpret_cast<void**>(&begin_), allocated()), "cudaMalloc");
  require(cudaMemset(begin_, kGuardValue, allocated()), "cudaMemset");
  poison();
}

DeviceMemory::~DeviceMemory() {
  if (begin_ != nullptr) require(cudaFree(begin_), "cudaFree");
}

DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept
    : begin_(std::exchange(other.begin_, nullptr)), bytes_(other.bytes_), shift_(other.shift_) {}

DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
  std::swap(begin_, other.begin_);
  std::swap(bytes_, other.bytes_);
  std::swap(shift_, other.shift_);
  return *this;
}

void DeviceMemory::poison() const {
  if (bytes_ > 0) require(cudaMemset(data(), kPoison, bytes_), "cudaMemset");
}

void DeviceMemory::upload(const void* from, size_t bytes, size_t offset) const {
  if (bytes > 0)
    require(cudaMemcpy(data() + offset, from, bytes, cudaMemcpyHostToDevice), "upload");
}

std::vector<std::byte> DeviceMemory::download() const {
  std::vector<std::byte> bytes(bytes_);
  if (bytes_ > 0)
    require(cudaMemcpy(bytes.data(), data(), bytes_, cudaMemcpyDeviceToHost), "download");
  return bytes;
}

bool DeviceMemory::guards_intact() const {
  std::vector<unsigned char> guard(kGuard);
  for (const std::byte* at : {begin_, begin_ + allocated() - kGuard}) {
    require(cudaMemcpy(guard.data(), at, kGuard, cudaMemcpyDeviceToHost), "guard");
    if (!std::all_of(guard.begin(), guard.end(), [](auto b) { return b == kGuardValue; }))
      return false;
  }
  return true;
}

}  // namespace valora::kernels::cuda
