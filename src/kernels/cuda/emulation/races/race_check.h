// Finds races by rule, in whatever order the threads run: two accesses to a byte by different
// threads, at least one of them a write, that nothing orders. Order is what CUDA promises: barriers
// of the block, __syncwarp within a warp, counters between blocks (count_in_turns), and launches.
// Shuffles and tensor-core operations order nothing.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "kernels/cuda/emulation/access_observer.h"

namespace valora::kernels::cuda::emulation {

class RaceCheck final : public AccessObserver {
 public:
  RaceCheck() = default;
  ~RaceCheck() override;

  void memory_began(const void* begin, size_t bytes, bool shared) override;
  void memory_ended(const void* begin) override;
  void launch_began() override;
  void block_began() override;
  // Ends the program if the access races with an earlier one.
  void accessed(const void* begin, size_t bytes, bool writes) override;
  void counted(const void* counter) override;

 private:
  // When a thread accessed a byte. block: a serial number. For several threads that nothing orders,
  // lane, warp or block is "many"; for many blocks, `barriers` holds the first block of the launch.
  struct Access {
    uint32_t block = 0, barriers = 0, syncs = 0;
    uint16_t warp = 0, lane = 0;
  };
  struct Byte {
    Access write, read;
  };
  struct Memory {
    size_t bytes = 0;
    bool shared = false;
    Byte* observed = nullptr;  // one per byte
  };
  // What a block wrote before `from` precedes what another one reads after `to`.
  struct Handover {
    Access from, to;
  };

  Access now() const;
  bool precedes(const Access& earlier, const Access& now, bool shared) const;
  bool handed_over(const Access& earlier, const Access& now) const;
  void add_read(Access& read, const Access& now, bool shared) const;
  [[noreturn]] static void fail_on_race(const Access& earlier, bool wrote, const Access& now,
                                        bool writes, bool shared);

  std::map<uintptr_t, Memory> memories_;  // by their first address
  std::map<uintptr_t, Memory>::const_iterator last_ = memories_.end();
  uint32_t block_ = 0, first_block_ = 1;  // of the launch
  std::map<const void*, std::vector<Access>> counts_;
  std::vector<Handover> handovers_;  // to the running block
};

}  // namespace valora::kernels::cuda::emulation
