#include "server/applications/admission.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace valora::server {
namespace {

using std::chrono::milliseconds;

int admitted(Admission& admission, int attempts) {
  int count = 0;
  for (int i = 0; i < attempts; ++i) count += !admission.admit();
  return count;
}

TEST(Admission, AdmitsAndCountsEverythingWithoutLimits) {
  const Application application{.name = "a"};
  SimulatedClock clock;
  Admission admission(application, clock);
  EXPECT_EQ(admitted(admission, 1000), 1000);
  EXPECT_EQ(admission.waiting(), 1000);
  admission.end_waiting();
  EXPECT_EQ(admission.waiting(), 999);
}

TEST(Admission, LimitsWaitingRequests) {
  const Application application{.name = "a", .max_waiting = 2};
  SimulatedClock clock;
  Admission admission(application, clock);
  EXPECT_EQ(admitted(admission, 5), 2);
  const auto refusal = admission.admit();
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->error.code, ErrorCode::kQueueFull);
  EXPECT_EQ(refusal->error.message,
            "2 requests of the application `a` wait for their first token, which is its limit; "
            "try again later");
  EXPECT_EQ(refusal->retry_seconds, 1);
  admission.end_waiting();
  EXPECT_EQ(admitted(admission, 5), 1);
}

TEST(Admission, CountsRequestsOfSeveralThreads) {
  const Application application{.name = "busy"};
  const SimulatedClock clock;
  Admission admission(application, clock);
  {
    std::vector<std::jthread> clients;
    for (int i = 0; i < 4; ++i)
      clients.emplace_back([&] {
        for (int request = 0; request < 1000; ++request) {
          EXPECT_FALSE(admission.admit());
          admission.end_waiting();
        }
      });
  }
  EXPECT_EQ(admission.waiting(), 0);
}

TEST(Admission, RateAllowsABurstOfOneSecond) {
  const Application application{.name = "a", .rate = 4};
  SimulatedClock clock;
  Admission admission(application, clock);
  EXPECT_EQ(admitted(admission, 9), 4);
  clock.advance(milliseconds(249));
  EXPECT_EQ(admitted(admission, 1), 0);
  clock.advance(milliseconds(1));
  EXPECT_EQ(admitted(admission, 9), 1);
  clock.advance(std::chrono::hours(1));
  EXPECT_EQ(admitted(admission, 9), 4);
}

TEST(Admission, RateBelowOneAllowsOneRequestAndGivesRetryAfter) {
  const Application application{.name = "a", .rate = 0.1};
  SimulatedClock clock;
  Admission admission(application, clock);
  EXPECT_EQ(admitted(admission, 1), 1);
  const auto refusal = admission.admit();
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->retry_seconds, 10);
  EXPECT_EQ(refusal->error.message,
            "the application `a` takes 0.1 requests per second; try again later");
  clock.advance(milliseconds(4500));
  EXPECT_EQ(admission.admit()->retry_seconds, 6);  // 5.5, rounded up
  clock.advance(milliseconds(5499));
  EXPECT_EQ(admission.admit()->retry_seconds, 1);
  clock.advance(milliseconds(1));
  EXPECT_EQ(admitted(admission, 2), 1);
}

TEST(Admission, RequestRefusedByTheQueueLimitDoesNotUseTheRate) {
  const Application application{.name = "a", .max_waiting = 1, .rate = 2};
  SimulatedClock clock;
  Admission admission(application, clock);
  EXPECT_EQ(admitted(admission, 100), 1);
  admission.end_waiting();
  EXPECT_EQ(admitted(admission, 100), 1);
  admission.end_waiting();
  EXPECT_EQ(admitted(admission, 100), 0);  // the burst is used up
}

}  // namespace
}  // namespace valora::server
