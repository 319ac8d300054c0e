// Races are found by rule, in every order of threads; what is ordered is not reported.
#include <gtest/gtest.h>

#include "kernels/cuda/emulation/machine.h"
#include "kernels/cuda/emulation/races/example_kernels.h"
#include "kernels/cuda/testing/device_memory.h"

namespace valora::kernels::cuda::emulation {
namespace {

constexpr size_t kBytes = 4096;
constexpr const char* kRace = "memory that .* (wrote|read), and nothing orders the two";

class RaceCheckTest : public testing::TestWithParam<Schedule> {
 protected:
  RaceCheckTest() : memory_(kBytes) {
    memory_.upload(std::vector<std::byte>(kBytes).data(), kBytes);
    machine().schedule = GetParam();
  }
  ~RaceCheckTest() override { machine() = {}; }

  template <typename T = float>
  T* memory() const {
    return reinterpret_cast<T*>(memory_.data());
  }

  DeviceMemory memory_;
};
INSTANTIATE_TEST_SUITE_P(Orders, RaceCheckTest,
                         testing::Values(Schedule::kForward, Schedule::kBackward, Schedule::kRandom,
                                         Schedule::kUnfair));

TEST_P(RaceCheckTest, BarriersOrderThreadsOfBlock) {
  EXPECT_EQ(exchange_values(Order::kBlock, Order::kBlock, 32, memory()), 0);
  EXPECT_DEATH(exchange_values(Order::kNone, Order::kBlock, 32, memory()), kRace);
  EXPECT_DEATH(exchange_values(Order::kBlock, Order::kNone, 32, memory()), kRace);
}

TEST_P(RaceCheckTest, SyncwarpOrdersLanesOfOneWarp) {
  EXPECT_EQ(exchange_values(Order::kWarp, Order::kWarp, 1, memory()), 0);
  EXPECT_DEATH(exchange_values(Order::kWarp, Order::kWarp, 32, memory()), kRace);
  EXPECT_DEATH(exchange_values(Order::kWarp, Order::kNone, 1, memory()), kRace);
}

TEST_P(RaceCheckTest, ShufflesOrderNothing) { EXPECT_DEATH(read_after_shuffle(memory()), kRace); }

TEST_P(RaceCheckTest, ReadsByAllThreadsPrecedeWrite) {
  EXPECT_EQ(write_after_reads(Order::kBlock, memory()), 0);
  EXPECT_DEATH(write_after_reads(Order::kWarp, memory()), kRace);
}

TEST_P(RaceCheckTest, AdjacentBytesDoNotRace) {
  EXPECT_EQ(write_bytes(memory<uint8_t>()), 0);
  EXPECT_EQ(write_bytes(memory<uint8_t>()), 0) << "launches are ordered";
}

TEST_P(RaceCheckTest, BlocksRaceInGlobalMemory) {
  EXPECT_DEATH(write_from_all_blocks(memory()),
               "writes global memory that thread 0 of another block wrote");
  EXPECT_DEATH(read_what_block_writes(memory()), kRace);
}

TEST_P(RaceCheckTest, CountersOrderBlocks) {
  auto* const counter = memory<unsigned>() + 64;
  float* const sum = memory() + 128;
  EXPECT_EQ(add_in_last_block(Order::kBlock, memory(), counter, sum), 0);
  EXPECT_EQ(*sum, kBlocks);
  EXPECT_DEATH(add_in_last_block(Order::kWarp, memory(), counter, sum),
               "reads global memory that thread 63 of another block wrote");
}

TEST_P(RaceCheckTest, CopiesRaceUntilTheirWait) {
  EXPECT_DEATH(read_before_wait(memory(), memory() + 512), kRace);
}

}  // namespace
}  // namespace valora::kernels::cuda::emulation
