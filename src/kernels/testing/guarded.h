// For tests: a buffer that ends at a guard page.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

namespace valora::kernels {

// A buffer of `count` elements. Any access past its end is a segmentation fault.
template <typename T>
class Guarded {
 public:
  explicit Guarded(size_t count) : count_(count) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t bytes = (count * sizeof(T) + page - 1) / page * page;
    size_ = bytes + page;
    map_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map_ == MAP_FAILED || mprotect(static_cast<char*>(map_) + bytes, page, PROT_NONE) != 0)
      throw std::bad_alloc();
    data_ = reinterpret_cast<T*>(static_cast<char*>(map_) + bytes) - count;
  }
  explicit Guarded(const std::vector<T>& values) : Guarded(values.size()) {
    if (count_) std::memcpy(data_, values.data(), count_ * sizeof(T));
  }
  Guarded(Guarded&& other) noexcept
      : map_(std::exchange(other.map_, nullptr)),
        size_(other.size_),
        data_(other.data_),
        count_(other.count_) {}
  Guarded& operator=(Guarded&&) = delete;
  ~Guarded() {
    if (map_) munmap(map_, size_);
  }

  T* data() const { return data_; }
  size_t size() const { return count_; }
  T& operator[](size_t i) const { return data_[i]; }

 private:
  void* map_ = nullptr;
  size_t size_ = 0;
  T* data_ = nullptr;
  size_t count_ = 0;
};

}  // namespace valora::kernels
