// Allocations that fail when a test asks for it. Linking this library replaces the global operator
// new.
#pragma once

#include <cstdint>

namespace valora::testing {

// While it exists, allocations of this process are counted, and the n-th one (from 0) fails; with
// `lasting` all further ones, too. One at a time.
class AllocationFault {
 public:
  explicit AllocationFault(uint64_t n, bool lasting = false);
  ~AllocationFault();
  AllocationFault(const AllocationFault&) = delete;
  AllocationFault& operator=(const AllocationFault&) = delete;

  // True once an allocation has failed.
  bool struck() const;
  // Allocations so far.
  uint64_t seen() const;

 private:
  const uint64_t n_;
};

// For allocators other than operator new: counts an allocation, and tells whether it fails.
bool allocation_fails();

// While it exists, the allocations of this thread are neither counted nor fail.
class SparedThread {
 public:
  SparedThread();
  ~SparedThread();
  SparedThread(const SparedThread&) = delete;
  SparedThread& operator=(const SparedThread&) = delete;
};

}  // namespace valora::testing
