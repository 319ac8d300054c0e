#include "kernels/cuda/emulation/block.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "kernels/cuda/emulation/access_observer.h"
#include "kernels/cuda/emulation/machine.h"

namespace valora::kernels::cuda::emulation {
namespace {

constexpr size_t kMostStaticBytes = 48 << 10;

// The GPU may copy at any time between the request and the end of the wait.
void observe(const Copy& copy) {
  if (access_observer() == nullptr) return;
  if (copy.from != nullptr) access_observer()->accessed(copy.from, sizeof(uint4), false);
  const void* const to = reinterpret_cast<const void*>(static_cast<uintptr_t>(copy.to));
  access_observer()->accessed(to, sizeof(uint4), true);
}

}  // namespace

Block* current_block = nullptr;

void Block::begin(const Launch& launch, uint3 index) {
  launch_ = &launch, index_ = index;
  // All blocks of a kernel declare the same shared memory.
  if (launch.kernel != last_kernel_ || launch.shared_bytes != last_dynamic_bytes_)
    shared_.begin_kernel(launch.shared_bytes);
  last_kernel_ = launch.kernel, last_dynamic_bytes_ = launch.shared_bytes;
  shared_.begin_block();
  if (access_observer() != nullptr) access_observer()->block_began();
  ++barriers_;
  count_ = alive_ = launch.block.x, waiting_ = 0, ready_warps_ = 0;
  const unsigned warps = (count_ + kLanes - 1) / kLanes;
  random_.seed(
      static_cast<uint32_t>(machine().seed + 7919 * (index.x + 31 * (index.y + 31 * index.z))));
  std::array<unsigned, kMostThreads / kLanes> ranks;
  std::iota(ranks.begin(), ranks.end(), 0u);
  std::shuffle(ranks.begin(), ranks.begin() + warps, random_);
  for (unsigned w = 0; w < warps; ++w) {
    warps_[w] = {};
    warps_[w].rank = ranks[w];
  }
  current_warp_ = machine().schedule == Schedule::kBackward ? warps - 1 : 0;
  while (threads_.size() < count_) threads_.push_back(std::make_unique<Thread>());
  for (unsigned i = 0; i < count_; ++i) {
    Thread& t = *threads_[i];
    t.index = {i, 0, 0}, t.done = t.at_barrier = t.waited = false;
    t.fiber.reset(&run_thread);
    ++warps_[i / kLanes].alive;
    make_ready(i);
  }
}

void Block::run(const Launch& launch, uint3 index) {
  begin(launch, index);
  current_block = this;
  host_.switch_to(next());
  finish();
  current_block = nullptr;
}

void Block::finish() const {
  for (unsigned i = 0; i < count_; ++i)
    if (!threads_[i]->done) {
      current_block->running_ = threads_[i].get();
      fail(threads_[i]->at_barrier ? "waits at a barrier that not all threads reach"
                                   : "waits for lanes of its warp that never come");
    }
  shared_.end_block();
  const size_t bytes = shared_.declared_bytes();
  const auto most = static_cast<size_t>(machine().block_shared_bytes);
  if (bytes > kMostStaticBytes) fail("declares more than 48 kB of shared memory");
  if (bytes + launch_->shared_bytes > most) fail("has more shared memory than a block of this GPU");
}

void Block::run_thread() {
  Block& block = *current_block;
  block.running_->fiber.began();
  block.launch_->body();
  block.end_thread();
}

void Block::end_thread() {
  Thread& self = *running_;
  // A thread may leave empty groups.
  if (launch_->waits && !self.waited) fail("does not wait for the launch before it");
  if (self.completed < self.copies.size()) fail("ends without waiting for its copies");
  self.copies.clear(), self.groups.clear();
  self.completed = self.completed_groups = 0;
  self.done = true;
  Warp& warp = warps_[self.index.x / kLanes];
  if (warp.arrived > 0) fail("ends while lanes of its warp wait for it");
  if (waiting_ > 0) fail("ends while threads of its block wait at a barrier");
  --warp.alive;
  --alive_;
  Fiber& to = next();
  self.fiber.end(to);
}

void Block::make_ready(unsigned thread) {
  warps_[thread / kLanes].ready |= 1u << thread % kLanes;
  ready_warps_ |= 1u << thread / kLanes;
}

unsigned Block::choose_warp() {
  switch (machine().schedule) {
    case Schedule::kForward: {
      const uint32_t from = ready_warps_ & ~0u << current_warp_;
      return std::countr_zero(from != 0 ? from : ready_warps_);
    }
    case Schedule::kBackward: {
      const uint32_t from = ready_warps_ & ~0u >> (kLanes - 1 - current_warp_);
      return kLanes - 1 - std::countl_zero(from != 0 ? from : ready_warps_);
    }
    case Schedule::kRandom: {
      uint32_t left = ready_warps_;
      for (auto skip = random_() % std::popcount(left); skip > 0; --skip) left &= left - 1;
      return std::countr_zero(left);
    }
    case Schedule::kUnfair: break;
  }
  unsigned best = std::countr_zero(ready_warps_);
  for (uint32_t left = ready_warps_; left != 0; left &= left - 1) {
    const unsigned w = std::countr_zero(left);
    if (warps_[w].rank < warps_[best].rank) best = w;
  }
  return best;
}

unsigned Block::choose_lane(uint32_t ready) {
  if (machine().schedule == Schedule::kBackward) return kLanes - 1 - std::countl_zero(ready);
  if (machine().schedule == Schedule::kRandom)
    for (auto skip = random_() % std::popcount(ready); skip > 0; --skip) ready &= ready - 1;
  return std::countr_zero(ready);
}

Fiber& Block::next() {
  if (ready_warps_ == 0) return host_;
  // A warp runs until all its lanes have met; with the random schedule, any warp may be next.
  if (machine().schedule == Schedule::kRandom || warps_[current_warp_].ready == 0)
    current_warp_ = choose_warp();
  Warp& warp = warps_[current_warp_];
  const unsigned lane = choose_lane(warp.ready);
  warp.ready &= ~(1u << lane);
  if (warp.ready == 0) ready_warps_ &= ~(1u << current_warp_);
  running_ = threads_[current_warp_ * kLanes + lane].get();
  return running_->fiber;
}

void Block::pass_on() {
  Thread& self = *running_;
  Fiber& to = next();
  if (&to != &self.fiber) self.fiber.switch_to(to);
}

void Block::release_barrier() {
  waiting_ = 0;
  ++barriers_;
  for (unsigned i = 0; i < count_; ++i)
    if (threads_[i]->at_barrier) threads_[i]->at_barrier = false, make_ready(i);
}

void Block::barrier() {
  Thread& self = *running_;
  if (warps_[self.index.x / kLanes].arrived > 0)
    fail("is at a barrier while lanes of its warp are at a warp operation");
  if (alive_ < count_) fail("is at a barrier that threads which have ended do not reach");
  self.at_barrier = true;
  if (++waiting_ == count_) release_barrier();
  pass_on();
}

void Block::meet(Meeting what, void* argument, void (*all)(const Lanes&)) {
  const unsigned thread = running_->index.x, first = thread / kLanes * kLanes;
  Warp& warp = warps_[thread / kLanes];
  if (warp.alive != kLanes) fail("does a warp operation in a warp of fewer than 32 threads");
  if (warp.arrived == 0) warp.meeting = what;
  if (warp.meeting != what) fail("does another warp operation than other lanes of its warp");
  warp.arguments[thread % kLanes] = argument;
  if (++warp.arrived == kLanes) {
    warp.arrived = 0;
    if (what == Meeting::kSync) ++warp.syncs;
    if (all != nullptr) all(warp.arguments);
    for (unsigned lane = 0; lane < kLanes; ++lane) make_ready(first + lane);
    // Warps take turns so that none gets far ahead; an unfair schedule lets the warp continue.
    const bool stays = machine().schedule == Schedule::kUnfair;
    if (!stays && (ready_warps_ & ~(1u << thread / kLanes)) != 0) {
      const bool back = machine().schedule == Schedule::kBackward;
      current_warp_ = (current_warp_ + (back ? kLanes - 1 : 1)) % kLanes;
      current_warp_ = choose_warp();
    }
  }
  pass_on();
}

Moment Block::now() const {
  const unsigned thread = running_->index.x;
  return {thread, barriers_, warps_[thread / kLanes].syncs};
}

void Block::copy_later(Copy copy) {
  shared_.begin_copy(copy.to, now());
  observe(copy);
  running_->copies.push_back(copy);
}

void Block::commit_copies() { running_->groups.push_back(running_->copies.size()); }

void Block::wait_copies(int pending) {
  Thread& t = *running_;
  for (; t.groups.size() - t.completed_groups > static_cast<size_t>(pending); ++t.completed_groups)
    for (; t.completed < t.groups[t.completed_groups]; ++t.completed) {
      const Copy& copy = t.copies[t.completed];
      auto* to = reinterpret_cast<uint4*>(static_cast<uintptr_t>(copy.to));
      *to = copy.from == nullptr ? uint4{} : *static_cast<const uint4*>(copy.from);
      shared_.end_copy(copy.to, now());
      observe(copy);
    }
  if (t.completed == t.copies.size() && t.completed_groups == t.groups.size()) {
    t.copies.clear(), t.groups.clear();
    t.completed = t.completed_groups = 0;
  }
}

}  // namespace valora::kernels::cuda::emulation
