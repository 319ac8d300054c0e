// Which steps of a mixed load find a graph, without a GPU.
#include "engine/graphs/step_kinds.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>

namespace valora {
namespace {

// A graph that counts its instances.
class Counted {
 public:
  explicit Counted(int& count) : count_(&count) { ++count; }
  Counted(Counted&& other) noexcept : count_(std::exchange(other.count_, nullptr)) {}
  ~Counted() {
    if (count_) --*count_;
  }

 private:
  int* count_;
};

StepKind kind(int32_t tokens) { return {.bounds = {.tokens = tokens, .longest = 512}}; }

// Handles a step as the engine does. Returns true if a graph ran it.
bool run(StepKinds<Counted>& kinds, const StepKind& kind, int& graphs) {
  if (kinds.find(kind)) return true;
  if (!kinds.due(kind)) return false;
  kinds.insert(kind, [&] { return Counted(graphs); });
  return true;
}

TEST(StepKinds, TheThirdStepOfAKindIsCaptured) {
  int graphs = 0;
  StepKinds<Counted> kinds;
  for (const bool graph : {false, false, true, true}) EXPECT_EQ(run(kinds, kind(1), graphs), graph);
  EXPECT_FALSE(run(kinds, kind(2), graphs));
  EXPECT_EQ(graphs, 1);
  EXPECT_EQ(kinds.waiting(), 1u) << "a kind with a graph waits for none";
}

TEST(StepKinds, RareKindsEvictNoGraph) {
  int graphs = 0;
  StepKinds<Counted> kinds({.graphs = 4, .waiting = 8, .seen_before = 2});
  for (int step = 0; step < 3; ++step)
    for (int32_t i = 0; i < 4; ++i) run(kinds, kind(i), graphs);
  for (int32_t rare = 100; rare < 400; ++rare) EXPECT_FALSE(run(kinds, kind(rare), graphs));
  EXPECT_LE(kinds.waiting(), 8u);
  for (int32_t i = 0; i < 4; ++i) EXPECT_TRUE(run(kinds, kind(i), graphs)) << i;
  EXPECT_EQ(graphs, 4);
}

TEST(StepKinds, OnlyLeastRecentlyUsedGraphIsEvicted) {
  int graphs = 0;
  StepKinds<Counted> kinds({.graphs = 3, .waiting = 8, .seen_before = 0});
  for (const int32_t i : {1, 2, 3, 1, 4}) EXPECT_TRUE(run(kinds, kind(i), graphs));
  EXPECT_EQ(graphs, 3);
  EXPECT_FALSE(kinds.find(kind(2)));
  for (const int32_t i : {1, 3, 4}) EXPECT_TRUE(kinds.find(kind(i))) << i;
}

TEST(StepKinds, AFailedCaptureChangesNothingElse) {
  int graphs = 0;
  StepKinds<Counted> kinds({.graphs = 2, .waiting = 8, .seen_before = 0});
  run(kinds, kind(1), graphs);
  EXPECT_TRUE(kinds.due(kind(2)));
  EXPECT_THROW(kinds.insert(kind(2), []() -> Counted { throw std::bad_alloc(); }), std::bad_alloc);
  EXPECT_EQ(kinds.graphs(), 1u);
  EXPECT_TRUE(kinds.find(kind(1)));
  EXPECT_FALSE(kinds.find(kind(2)));
  EXPECT_TRUE(run(kinds, kind(2), graphs)) << "it is still due";
}

// 20 adapters with 5 sets of targets in random batches: if kinds used the exact union of targets,
// there would be up to 32 times as many.
TEST(StepKinds, TargetsOfAdaptersDoNotMultiplyTheKinds) {
  const uint64_t targets[] = {0b0001, 0b0011, 0b0100, 0b1010, 0b11111};
  const int32_t sizes[] = {1, 2, 4, 8, 16};
  constexpr int kSteps = 3000;
  for (const bool exact : {true, false}) {
    std::mt19937 random(7);
    int graphs = 0, hits = 0, most = 0;
    StepKinds<Counted> kinds({.graphs = 24, .waiting = 512, .seen_before = 2});
    TouchedModules touched;
    for (int step = 0; step < kSteps; ++step) {
      const auto sequences = static_cast<int32_t>(1 + random() % 16);
      uint64_t bits = 0;
      for (int32_t i = 0; i < sequences; ++i)
        if (const auto adapter = random() % 25; adapter < 20) bits |= targets[adapter % 5];
      StepKind of{.bounds = {.tokens = static_cast<int32_t>(
                                 std::bit_ceil(static_cast<uint32_t>(sequences))),
                             .longest = static_cast<int32_t>(512 << (random() % 2)),
                             .lora_layers = bits ? 1 : 0,
                             .max_rank = bits ? 16 : 0}};
      EXPECT_TRUE(std::ranges::find(sizes, of.bounds.tokens) != std::end(sizes));
      of.touched = exact ? std::vector{bits} : touched.of_step({bits});
      if (!of.touched.empty()) {
        EXPECT_EQ(of.touched[0] & bits, bits) << "each adapter of the step is launched for";
      }
      hits += run(kinds, of, graphs) ? 1 : 0;
      most = std::max(most, graphs);
    }
    EXPECT_LE(most, 24);
    if (exact)
      EXPECT_EQ(most, 24) << "the case is not hard enough";
    else {
      EXPECT_LE(most, 5 * 2 * 2) << "sizes, lengths, with and without adapters";
      EXPECT_GE(hits, kSteps * 97 / 100);
    }
  }
}

TEST(TouchedModules, GrowOnlyWithNewTargets) {
  TouchedModules touched;
  EXPECT_TRUE(touched.of_step({}).empty());
  EXPECT_EQ(touched.of_step({0b01, 0}), (std::vector<uint64_t>{0b01, 0}));
  EXPECT_EQ(touched.of_step({0b10, 1}), (std::vector<uint64_t>{0b11, 1}));
  EXPECT_EQ(touched.of_step({0b01, 0}), (std::vector<uint64_t>{0b11, 1}));
  EXPECT_TRUE(touched.of_step({0, 0}).empty());
}

TEST(CaptureTries, OutOfMemoryRetriesAndThreeOtherFailuresStop) {
  CaptureTries tries;
  const auto steps_until_next = [&] {
    int64_t steps = 0;
    do ++steps;
    while (!tries.now());
    return steps;
  };
  EXPECT_EQ(steps_until_next(), 1);
  tries.lacked_memory();
  EXPECT_EQ(steps_until_next(), CaptureTries::kFirstPause);
  tries.lacked_memory();
  EXPECT_EQ(steps_until_next(), 2 * CaptureTries::kFirstPause);
  for (int i = 0; i < 20; ++i) tries.lacked_memory();
  EXPECT_EQ(steps_until_next(), CaptureTries::kLongestPause);
  EXPECT_FALSE(tries.ended());
  tries.succeeded();
  tries.lacked_memory();
  EXPECT_EQ(steps_until_next(), CaptureTries::kFirstPause);
  for (int failures = 1; failures <= 3; ++failures) {
    EXPECT_TRUE(tries.now());
    tries.failed();
    EXPECT_EQ(tries.ended(), failures == 3);
  }
  EXPECT_FALSE(tries.now());
}

}  // namespace
}  // namespace valora
