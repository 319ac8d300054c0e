// The shared memory of a block. It is below 4 GiB, so that 32-bit shared addresses are real
// addresses. Each declaration ends at an inaccessible page. Copies and ldmatrix are checked against
// each other: two accesses that no barrier orders are an error, in whatever order the threads run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace valora::kernels::cuda::emulation {

// A thread and how far it has come. barriers: barriers that its block has passed; syncs: __syncwarp
// calls of its warp.
struct Moment {
  unsigned thread = 0;
  uint64_t barriers = 0, syncs = 0;
};

class SharedMemory {
 public:
  SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  // Discards all declarations and places the dynamic shared memory.
  void begin_kernel(size_t dynamic_bytes);
  // Fills everything with NaN, whatever the dtype.
  void begin_block();
  // Fails if memory before a declaration was written to.
  void end_block() const;

  std::byte* dynamic() const { return places_.front().begin; }
  // The memory of one declaration, placed on first use.
  std::byte* declared(const void* declaration, size_t bytes);
  size_t declared_bytes() const;

  // A copy of 16 bytes to `address` begins, or has completed.
  void begin_copy(uint32_t address, const Moment& now);
  void end_copy(uint32_t address, const Moment& now);
  // ldmatrix reads 16 bytes from `address`.
  void read(uint32_t address, const Moment& now);

 private:
  struct Place {
    const void* declaration;
    std::byte* begin;
    size_t bytes;
    std::byte* page;  // first of its pages
  };
  // Accesses recorded for 16 bytes.
  struct Chunk {
    uint64_t write_barriers = 0, write_syncs = 0;
    uint64_t read_barriers = 0, read_syncs = 0;
    uint16_t writer = 0, reader_warp = 0, in_flight = 0, copier = 0;
  };
  std::byte* place(const void* declaration, size_t bytes);
  Chunk& chunk_at(uint32_t address, const char* what);

  std::byte* arena_ = nullptr;
  std::byte* free_ = nullptr;
  std::vector<Place> places_;
  std::vector<Chunk> chunks_;
};

}  // namespace valora::kernels::cuda::emulation
