// Makes allocations fail on demand in tests. Linking this library replaces the global operator new.
#pragma once

#include <cstdint>

namespace valora::testing {

// During its lifetime, the process's allocations are counted and the n-th (from 0) fails; with
// `lasting`, all later ones fail too. At most one may exist at a time.
class AllocationFault {
 public:
  explicit AllocationFault(uint64_t n, bool lasting = false);
  ~AllocationFault();
  AllocationFault(const AllocationFault&) = delete;
  AllocationFault& operator=(const AllocationFault&) = delete;

  // True once it has made an allocation fail.
  bool struck() const;
  // Allocations so far.
  uint64_t seen() const;

 private:
  const uint64_t n_;
};

// For allocators other than operator new: counts an allocation and returns true if it must fail.
bool allocation_fails();

// During its lifetime, allocations of this thread are not counted and do not fail.
class SparedThread {
 public:
  SparedThread();
  ~SparedThread();
  SparedThread(const SparedThread&) = delete;
  SparedThread& operator=(const SparedThread&) = delete;
};

}  // namespace valora::testing
