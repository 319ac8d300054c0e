#include "kernels/cuda/emulation/shared_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <string>

#include "base/sanitizer.h"
#include "kernels/cuda/emulation/access_observer.h"
#include "kernels/cuda/emulation/machine.h"

#if defined(VALORA_UNDER_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(begin, bytes) (void)0
#define ASAN_UNPOISON_MEMORY_REGION(begin, bytes) (void)0
#endif

namespace valora::kernels::cuda::emulation {
namespace {

constexpr size_t kArenaBytes = 1 << 20;
constexpr size_t kPage = 4096, kVector = 16;
constexpr int kUninitialised = 0xff;  // NaN in all dtypes
constexpr unsigned kLanes = 32;
constexpr uint16_t kManyWarps = 0xffff;

size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

std::string name_of(unsigned thread) { return "thread " + std::to_string(thread); }

}  // namespace

SharedMemory::SharedMemory() {
  void* arena = mmap(nullptr, kArenaBytes, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_32BIT, -1, 0);
  if (arena == MAP_FAILED) throw std::bad_alloc();
  arena_ = static_cast<std::byte*>(arena);
  chunks_.resize(kArenaBytes / kVector);
  if (access_observer() != nullptr) access_observer()->memory_began(arena_, kArenaBytes, true);
}

SharedMemory::~SharedMemory() {
  ASAN_UNPOISON_MEMORY_REGION(arena_, kArenaBytes);
  munmap(arena_, kArenaBytes);
}

std::byte* SharedMemory::place(const void* declaration, size_t bytes) {
  const size_t pages = round_up(bytes, kPage);
  if (free_ + pages + kPage > arena_ + kArenaBytes)
    fail("declares more shared memory than any GPU has");
  if (pages > 0 && mprotect(free_, pages, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
  std::byte* begin = free_ + pages - round_up(bytes, kVector);
  places_.push_back({declaration, begin, bytes, free_});
  free_ += pages + kPage;
  std::memset(places_.back().page, kUninitialised, pages);
  ASAN_POISON_MEMORY_REGION(places_.back().page, pages);
  ASAN_UNPOISON_MEMORY_REGION(begin, bytes);
  return begin;
}

void SharedMemory::begin_kernel(size_t dynamic_bytes) {
  ASAN_UNPOISON_MEMORY_REGION(arena_, kArenaBytes);
  if (mprotect(arena_, kArenaBytes, PROT_NONE) != 0) throw std::bad_alloc();
  places_.clear();
  free_ = arena_ + kPage;
  place(nullptr, dynamic_bytes);
}

void SharedMemory::begin_block() {
  for (const Place& p : places_) std::memset(p.begin, kUninitialised, p.bytes);
}

void SharedMemory::end_block() const {
  for (const Place& p : places_) {
    [[maybe_unused]] const auto before = static_cast<size_t>(p.begin - p.page);
    ASAN_UNPOISON_MEMORY_REGION(p.page, before);
    const bool intact =
        std::all_of(p.page, p.begin, [](std::byte b) { return b == std::byte{kUninitialised}; });
    ASAN_POISON_MEMORY_REGION(p.page, before);
    if (!intact) fail("wrote before a declaration of shared memory");
  }
}

std::byte* SharedMemory::declared(const void* declaration, size_t bytes) {
  for (const Place& p : places_)
    if (p.declaration == declaration) return p.begin;
  return place(declaration, bytes);
}

size_t SharedMemory::declared_bytes() const {
  size_t bytes = 0;
  for (const Place& p : places_) bytes += p.declaration != nullptr ? round_up(p.bytes, kVector) : 0;
  return bytes;
}

SharedMemory::Chunk& SharedMemory::chunk_at(uint32_t address, const char* what) {
  const auto* begin = reinterpret_cast<const std::byte*>(static_cast<uintptr_t>(address));
  if (address % kVector != 0)
    fail(std::string(what) + " at an address that is not 16-byte aligned");
  for (const Place& p : places_)
    if (begin >= p.begin && begin + kVector <= p.begin + p.bytes)
      return chunks_[static_cast<size_t>(begin - arena_) / kVector];
  fail(std::string(what) + " outside of the shared memory of the block");
}

void SharedMemory::begin_copy(uint32_t address, const Moment& now) {
  Chunk& c = chunk_at(address, "cp.async");
  const bool read_before = c.read_barriers < now.barriers ||
                           (c.reader_warp == now.thread / kLanes && c.read_syncs < now.syncs);
  if (c.in_flight > 0) fail("cp.async to where a copy of " + name_of(c.copier) + " is in flight");
  if (!read_before) fail("cp.async over what ldmatrix read, without a barrier between them");
  ++c.in_flight, c.copier = static_cast<uint16_t>(now.thread);
}

void SharedMemory::end_copy(uint32_t address, const Moment& now) {
  Chunk& c = chunk_at(address, "cp.async");
  --c.in_flight;
  c.writer = static_cast<uint16_t>(now.thread);
  c.write_barriers = now.barriers, c.write_syncs = now.syncs;
}

void SharedMemory::read(uint32_t address, const Moment& now) {
  Chunk& c = chunk_at(address, "ldmatrix");
  const unsigned warp = now.thread / kLanes;
  const bool written_before = c.write_barriers < now.barriers || c.writer == now.thread ||
                              (c.writer / kLanes == warp && c.write_syncs < now.syncs);
  if (c.in_flight > 0)
    fail("ldmatrix of what cp.async of " + name_of(c.copier) + " has not been waited for");
  if (!written_before)
    fail("ldmatrix of what cp.async of " + name_of(c.writer) +
         " wrote, without a barrier between them");
  const bool others = c.read_barriers == now.barriers && c.reader_warp != warp;
  c.reader_warp = others ? kManyWarps : static_cast<uint16_t>(warp);
  c.read_barriers = now.barriers, c.read_syncs = now.syncs;
}

}  // namespace valora::kernels::cuda::emulation
