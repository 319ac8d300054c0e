#include "base/threads/host_communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <thread>

namespace valora {
namespace {

using enum Communicator::Reduction;

using ::testing::HasSubstr;
using namespace std::chrono_literals;

// Runs body(rank) on one thread per rank. Returns the message that each threw, or an empty text.
std::vector<std::string> on_ranks(Communicator& communicator,
                                  const std::function<void(int)>& body) {
  std::vector<std::string> thrown(communicator.ranks());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < communicator.ranks(); ++rank)
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (const std::exception& e) {
        thrown[rank] = e.what();
        communicator.fail(rank, e.what());
      }
    });
  for (std::thread& thread : threads) thread.join();
  return thrown;
}

std::vector<float> random_values(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> values;
  std::vector<float> v(count);
  for (float& x : v) x = values(random);
  return v;
}

class Ranks : public ::testing::TestWithParam<int> {};

TEST_P(Ranks, AllReduceAddsInTheOrderOfTheRanks) {
  for (const size_t count : {0, 1, 15, 16, 17, 100, 5000, 70001}) {
    HostCommunicator communicator(GetParam(), {});
    std::vector<std::vector<float>> values;
    for (int r = 0; r < GetParam(); ++r) values.push_back(random_values(count, r));
    std::vector<float> sums = values[0];
    for (int r = 1; r < GetParam(); ++r)
      for (size_t i = 0; i < count; ++i) sums[i] += values[r][i];
    on_ranks(communicator, [&](int r) { communicator.all_reduce(r, values[r], serial_for, kSum); });
    for (int r = 0; r < GetParam(); ++r) EXPECT_EQ(values[r], sums) << "rank " << r;
    EXPECT_EQ(communicator.stats().collectives, 1);
    EXPECT_EQ(communicator.stats().bytes, 2 * (GetParam() - 1) * count * sizeof(float));
  }
}

TEST_P(Ranks, AllReduceFindsTheMaxima) {
  HostCommunicator communicator(GetParam(), {});
  std::vector<std::vector<float>> values;
  for (int r = 0; r < GetParam(); ++r) values.push_back(random_values(5000, r));
  std::vector<float> maxima = values[0];
  for (const std::vector<float>& others : values)
    std::ranges::transform(maxima, others, maxima.begin(),
                           [](float a, float b) { return std::max(a, b); });
  on_ranks(communicator, [&](int r) { communicator.all_reduce(r, values[r], serial_for, kMax); });
  for (int r = 0; r < GetParam(); ++r) EXPECT_EQ(values[r], maxima) << "rank " << r;
}

TEST_P(Ranks, GatherConcatenatesColumnsOnRank0) {
  constexpr int64_t kRows = 3;
  HostCommunicator communicator(GetParam(), {});
  const int ranks = GetParam(), columns = ranks * (ranks + 1) / 2;  // rank r has r + 1 of them
  std::vector<float> whole(kRows * columns, -1), expected;
  for (int row = 0; row < kRows; ++row)
    for (int r = 0; r < ranks; ++r)
      for (int c = 0; c <= r; ++c) expected.push_back(static_cast<float>(100 * row + 10 * r + c));
  on_ranks(communicator, [&](int r) {
    std::vector<float> part;
    for (int row = 0; row < kRows; ++row)
      for (int c = 0; c <= r; ++c) part.push_back(static_cast<float>(100 * row + 10 * r + c));
    communicator.gather_columns(r, part, kRows, r == 0 ? whole.data() : nullptr, serial_for);
  });
  EXPECT_EQ(whole, expected);
  EXPECT_EQ(communicator.stats().bytes, kRows * (columns - 1) * sizeof(float));
}

TEST_P(Ranks, RunsManyCollectivesInSequence) {
  HostCommunicator communicator(GetParam(), {.spin = 0ns});
  const auto thrown = on_ranks(communicator, [&](int r) {
    for (int i = 0; i < 300; ++i) {
      std::vector<float> values(40, static_cast<float>(r + i));
      communicator.all_reduce(r, values, serial_for, kSum);
      const auto sum = static_cast<float>(GetParam() * i + GetParam() * (GetParam() - 1) / 2);
      if (values != std::vector<float>(40, sum)) throw std::runtime_error("wrong sum");
    }
  });
  EXPECT_THAT(thrown, ::testing::Each(""));
}

TEST_P(Ranks, BroadcastCopiesRank0ToAll) {
  for (const size_t count : {0, 1, 15, 70001}) {
    HostCommunicator communicator(GetParam(), {});
    std::vector<std::vector<float>> values;
    for (int r = 0; r < GetParam(); ++r) values.push_back(random_values(count, r));
    const std::vector<float> of_first = values[0];
    on_ranks(communicator, [&](int r) {
      communicator.broadcast(r, std::as_writable_bytes(std::span(values[r])));
    });
    EXPECT_THAT(values, ::testing::Each(of_first));
    EXPECT_EQ(communicator.stats().bytes, (GetParam() - 1) * count * sizeof(float));
  }
}

TEST_P(Ranks, AgreesOnlyIfAllRanksAgree) {
  HostCommunicator communicator(GetParam(), {});
  for (int against = 0; against <= GetParam(); ++against) {
    std::vector<int> agreed(GetParam());
    on_ranks(communicator, [&](int r) { agreed[r] = communicator.all_agree(r, r != against); });
    EXPECT_THAT(agreed, ::testing::Each(against == GetParam() ? 1 : 0));
  }
}

INSTANTIATE_TEST_SUITE_P(Communicator, Ranks, ::testing::Values(1, 2, 3, 4, 7));

TEST(Communicator, FailureOfARankWakesAllOthers) {
  HostCommunicator communicator(3, {.limit = 1h});
  const auto thrown = on_ranks(communicator, [&](int r) {
    std::vector<float> values(8);
    communicator.all_reduce(r, values, serial_for, kSum);
    if (r == 1) throw std::runtime_error("out of luck");
    communicator.all_reduce(r, values, serial_for, kSum);
  });
  EXPECT_EQ(thrown[1], "out of luck");
  EXPECT_EQ(thrown[0], "rank 1 of 3 failed: out of luck");
  EXPECT_EQ(thrown[2], thrown[0]);
  EXPECT_EQ(communicator.failure(), thrown[0]);
}

// A collective completes on all ranks or on none, no matter when a rank fails.
TEST(Communicator, FailureCompletesCollectiveOnAllOrNone) {
  for (int trial = 0; trial < 200; ++trial) {
    HostCommunicator communicator(3, {.limit = 1h, .spin = trial % 2 == 0 ? 50us : 0us});
    std::array<int, 3> complete{};
    std::atomic<int> entered = 0;
    std::thread breaker([&] {
      while (entered < trial) std::this_thread::yield();
      communicator.fail(1, "broken");
    });
    const auto thrown = on_ranks(communicator, [&](int r) {
      for (;; ++complete[r]) {
        ++entered;
        std::vector<float> values(3, 1);
        communicator.all_reduce(r, values, serial_for, kSum);
      }
    });
    breaker.join();
    EXPECT_THAT(thrown, ::testing::Each("rank 1 of 3 failed: broken"));
    EXPECT_EQ(complete[0], complete[1]);
    EXPECT_EQ(complete[0], complete[2]);
  }
}

TEST(Communicator, TimeoutNamesMissingRank) {
  HostCommunicator communicator(2, {.limit = 20ms});
  std::vector<float> values(8);
  EXPECT_THROW(communicator.all_reduce(0, values, serial_for, kSum), RankLostError);
  EXPECT_THAT(communicator.failure().value(),
              HasSubstr("rank 1 of 2 failed: it did not enter a collective within 1 s"));
  EXPECT_THROW(communicator.all_reduce(1, values, serial_for, kSum), RankLostError);
}

TEST(Communicator, MismatchedSizesThrowOnAllRanks) {
  HostCommunicator communicator(2, {});
  const auto thrown = on_ranks(communicator, [&](int r) {
    std::vector<float> values(8 + r, 1);
    communicator.all_reduce(r, values, serial_for, kSum);
  });
  EXPECT_THAT(thrown, ::testing::Each(HasSubstr("different numbers of values")));
}

}  // namespace
}  // namespace valora
