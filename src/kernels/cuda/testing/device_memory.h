// Device memory for test and benchmark programs. A failed CUDA call ends the program with the
// call's name and error.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace valora::kernels::cuda {

void require(cudaError_t status, const char* what);
inline void require(int status, const char* what) {
  require(static_cast<cudaError_t>(status), what);
}

// Memory with guards before and after it, which kernels must not write. It is initially poison:
// bytes of 0xff, which are NaN in all dtypes. shift: offset of data() from 256-byte alignment, in
// bytes.
class DeviceMemory {
 public:
  explicit DeviceMemory(size_t bytes, size_t shift = 0);
  ~DeviceMemory();
  DeviceMemory(DeviceMemory&& other) noexcept;
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;

  std::byte* data() const { return begin_ + kGuard + shift_; }
  size_t size() const { return bytes_; }
  void poison() const;
  void upload(const void* from, size_t bytes, size_t offset = 0) const;
  std::vector<std::byte> download() const;
  bool guards_intact() const;

 private:
  static constexpr size_t kGuard = 4096;
  size_t allocated() const { return 2 * kGuard + shift_ + bytes_; }

  std::byte* begin_ = nullptr;
  size_t bytes_ = 0, shift_ = 0;
};

// A vector on the device.
template <typename T>
class DeviceTable {
 public:
  explicit DeviceTable(const std::vector<T>& host) : memory_(host.size() * sizeof(T)) {
    memory_.upload(host.data(), host.size() * sizeof(T));
  }
  const T* data() const { return reinterpret_cast<const T*>(memory_.data()); }

 private:
  DeviceMemory memory_;
};

}  // namespace valora::kernels::cuda
