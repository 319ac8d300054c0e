#include "kernels/cuda/emulation/races/race_check.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <string>

#include "kernels/cuda/emulation/block.h"
#include "kernels/cuda/emulation/machine.h"

namespace valora::kernels::cuda::emulation {
namespace {

constexpr uint16_t kMany = 0xffff;
constexpr uint32_t kManyBlocks = 0xffffffff;

}  // namespace

RaceCheck::~RaceCheck() {
  for (const auto& [begin, memory] : memories_)
    munmap(memory.observed, memory.bytes * sizeof(Byte));
}

void RaceCheck::memory_began(const void* begin, size_t bytes, bool shared) {
  // Pages that nobody accesses take no memory.
  void* const observed = mmap(nullptr, bytes * sizeof(Byte), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (observed == MAP_FAILED) throw std::bad_alloc();
  memories_[reinterpret_cast<uintptr_t>(begin)] = {bytes, shared, static_cast<Byte*>(observed)};
  last_ = memories_.end();
}

void RaceCheck::memory_ended(const void* begin) {
  const auto found = memories_.find(reinterpret_cast<uintptr_t>(begin));
  if (found == memories_.end()) return;
  munmap(found->second.observed, found->second.bytes * sizeof(Byte));
  memories_.erase(found);
  last_ = memories_.end();
}

void RaceCheck::launch_began() {
  first_block_ = block_ + 1;
  counts_.clear();
}

void RaceCheck::block_began() {
  ++block_;
  handovers_.clear();
}

RaceCheck::Access RaceCheck::now() const {
  const Moment moment = current_block->now();
  return {block_, static_cast<uint32_t>(moment.barriers), static_cast<uint32_t>(moment.syncs),
          static_cast<uint16_t>(moment.thread / kLanes),
          static_cast<uint16_t>(moment.thread % kLanes)};
}

bool RaceCheck::precedes(const Access& earlier, const Access& now, bool shared) const {
  if (earlier.block == now.block) {
    if (earlier.barriers < now.barriers) return true;
    return earlier.warp == now.warp && (earlier.lane == now.lane || earlier.syncs < now.syncs);
  }
  if (shared) return true;  // each block has its own
  const bool many = earlier.block == kManyBlocks;
  if ((many ? earlier.barriers : earlier.block) < first_block_) return true;
  return !many && handed_over(earlier, now);
}

bool RaceCheck::handed_over(const Access& earlier, const Access& now) const {
  const auto by = [](const Access& a, const Access& b) {
    return a.warp == b.warp && a.lane == b.lane;
  };
  return std::ranges::any_of(handovers_, [&](const Handover& h) {
    return h.from.block == earlier.block &&
           (earlier.barriers < h.from.barriers || by(earlier, h.from)) &&
           (h.to.barriers < now.barriers || by(h.to, now));
  });
}

// Keeps one record for all reads that no later write may precede.
void RaceCheck::add_read(Access& read, const Access& now, bool shared) const {
  if (precedes(read, now, shared))
    read = now;
  else if (read.block != now.block)
    read = {kManyBlocks, first_block_, 0, kMany, kMany};
  else if (read.warp != now.warp)
    read.warp = read.lane = kMany;
  else
    read.lane = kMany;
}

void RaceCheck::fail_on_race(const Access& earlier, bool wrote, const Access& now, bool writes,
                             bool shared) {
  std::string who = "other threads";
  if (earlier.warp != kMany && earlier.lane != kMany)
    who = "thread " + std::to_string(earlier.warp * kLanes + earlier.lane);
  else if (earlier.warp != kMany)
    who = "warp " + std::to_string(earlier.warp);
  if (earlier.block != now.block) who += " of another block";
  fail(std::string(writes ? "writes" : "reads") + (shared ? " shared" : " global") +
       " memory that " + who + (wrote ? " wrote" : " read") + ", and nothing orders the two");
}

void RaceCheck::accessed(const void* begin, size_t bytes, bool writes) {
  const auto address = reinterpret_cast<uintptr_t>(begin);
  if (last_ == memories_.end() || address - last_->first >= last_->second.bytes) {
    const auto after = memories_.upper_bound(address);
    if (after == memories_.begin()) return;
    const auto found = std::prev(after);
    if (address - found->first >= found->second.bytes) return;
    last_ = found;
  }
  const Memory& memory = last_->second;
  Byte* const first = memory.observed + (address - last_->first);
  const Access at = now();
  for (Byte* byte = first; byte < first + bytes; ++byte) {
    if (!precedes(byte->write, at, memory.shared))
      fail_on_race(byte->write, true, at, writes, memory.shared);
    if (!writes) {
      add_read(byte->read, at, memory.shared);
      continue;
    }
    if (!precedes(byte->read, at, memory.shared))
      fail_on_race(byte->read, false, at, true, memory.shared);
    *byte = {at, {}};
  }
}

void RaceCheck::counted(const void* counter) {
  std::vector<Access>& counts = counts_[counter];
  for (const Access& before : counts) handovers_.push_back({before, now()});
  counts.push_back(now());
}

}  // namespace valora::kernels::cuda::emulation
