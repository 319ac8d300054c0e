#include "scheduler/waiting_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace valora::scheduler {
namespace {

using ::testing::ElementsAre;

class WaitingQueueTest : public ::testing::Test {
 protected:
  std::shared_ptr<Request> push(TenantId tenant, double share = 1, int priority = 0) {
    auto request = std::make_shared<Request>();
    request->id = ++ids_;
    request->tenant = tenant;
    request->share = share;
    request->priority = priority;
    request->arrival = TimePoint{} + std::chrono::milliseconds(ids_);
    queue_.push(request);
    EXPECT_EQ(queue_.check(), "");
    return request;
  }

  std::vector<RequestId> first(size_t n = 100) const {
    std::vector<RequestId> ids;
    for (const Request* request : queue_.first(n)) ids.push_back(request->id);
    return ids;
  }

  std::shared_ptr<Request> admit() {
    const auto next = queue_.first(1)[0]->shared_from_this();
    queue_.admit(*next);
    next->state = RequestState::kRunning;
    queue_.erase_running(1);
    EXPECT_EQ(queue_.check(), "");
    return next;
  }

  // Serves the next n requests in turn, each with this much service; returns their tenants.
  std::vector<TenantId> serve(int n, double service = 1) {
    std::vector<TenantId> tenants;
    for (int i = 0; i < n && !queue_.empty(); ++i) {
      const auto next = admit();
      queue_.serve(*next, service);
      queue_.leave(*next);
      tenants.push_back(next->tenant);
    }
    return tenants;
  }

  WaitingQueue queue_;
  RequestId ids_ = 0;
};

TEST_F(WaitingQueueTest, OneTenantIsOrderedByPriorityThenArrival) {
  push(0);                     // 1
  push(0, 1, -1);              // 2
  push(0);                     // 3
  const auto late = push(0);   // 4
  const auto early = push(0);  // 5
  for (const auto& request : {late, early}) {
    queue_.erase(*request);
    request->preemptions = 1;
  }
  queue_.push(early);
  queue_.push(late);
  EXPECT_EQ(queue_.size(), 5u);
  EXPECT_FALSE(queue_.contended());
  EXPECT_THAT(first(), ElementsAre(2, 4, 5, 1, 3));
  EXPECT_THAT(first(2), ElementsAre(2, 4));
}

TEST_F(WaitingQueueTest, FloodOfOneTenantDoesNotDelayAnother) {
  push(1);
  push(2);
  serve(2);  // now the typical cost of both tenants' requests is known
  for (int i = 0; i < 6; ++i) push(1);
  push(2);  // 9
  push(2);  // 10
  EXPECT_TRUE(queue_.contended());
  EXPECT_THAT(first(), ElementsAre(3, 9, 4, 10, 5, 6, 7, 8));
}

TEST_F(WaitingQueueTest, WaitingTenantsAreServedByShare) {
  for (int i = 0; i < 40; ++i) {
    push(1, 3);
    push(2, 1);
  }
  EXPECT_EQ(std::ranges::count(serve(40), 1), 30);
  EXPECT_EQ(queue_.service(1), 30);
  EXPECT_EQ(queue_.service(2), 10);
}

TEST_F(WaitingQueueTest, SharesCountServiceNotRequests) {
  for (int i = 0; i < 30; ++i) {
    push(1);
    push(2);
  }
  int of_1 = 0;
  for (int i = 0; i < 20; ++i) {
    const auto request = admit();
    queue_.serve(*request, request->tenant == 1 ? 4 : 1);
    queue_.leave(*request);
    of_1 += request->tenant == 1 ? 1 : 0;
  }
  EXPECT_EQ(of_1, 4);
}

// None of them has received service yet.
TEST_F(WaitingQueueTest, SimultaneouslyFreePlacesAreShared) {
  push(1);
  push(2);
  serve(2);
  for (int i = 0; i < 8; ++i) {
    push(1);
    push(2, 3);
  }
  int of_1 = 0;
  for (int i = 0; i < 8; ++i) of_1 += admit()->tenant == 1 ? 1 : 0;
  EXPECT_EQ(of_1, 2);
}

TEST_F(WaitingQueueTest, EstimatedServiceIsCorrectedAtEnd) {
  push(1);
  push(2);
  serve(2, 10);
  for (int i = 0; i < 8; ++i) {
    push(1);
    push(2);
  }
  const auto of_1 = admit();
  const auto of_2 = admit();
  queue_.serve(*of_1, 1);  // less than the typical 10
  queue_.serve(*of_2, 12);
  queue_.leave(*of_1);
  EXPECT_THAT(serve(1, 1), ElementsAre(1));
  EXPECT_THAT(serve(1, 1), ElementsAre(1));
  EXPECT_EQ(queue_.service(1), 13);
  EXPECT_EQ(queue_.service(2), 22);
}

TEST_F(WaitingQueueTest, IdleTimeEarnsNoCredit) {
  for (int i = 0; i < 40; ++i) push(1);
  push(2);
  serve(20);
  for (int i = 0; i < 20; ++i) push(2);  // it returns after 1 request to the other's 19
  EXPECT_EQ(std::ranges::count(serve(10), 2), 5);
}

TEST_F(WaitingQueueTest, ReturningTenantKeepsDebt) {
  const auto request = push(1);
  for (int i = 0; i < 10; ++i) push(2);
  EXPECT_EQ(admit(), request);
  queue_.serve(*request, 4);
  queue_.leave(*request);
  push(1);
  EXPECT_THAT(serve(6), ElementsAre(2, 2, 2, 2, 2, 1));
}

TEST_F(WaitingQueueTest, PriorityComesBeforeTheShare) {
  push(2);
  serve(1, 100);
  push(1);         // 2
  push(2, 1, -1);  // 3
  push(2, 1, -1);  // 4
  EXPECT_THAT(first(), ElementsAre(3, 4, 2));
}

TEST_F(WaitingQueueTest, EraseRunningRemovesAdmittedRequests) {
  const auto a = push(1);
  push(1);
  const auto c = push(2);
  a->state = c->state = RequestState::kRunning;
  queue_.erase_running(3);
  EXPECT_EQ(queue_.size(), 1u);
  EXPECT_THAT(first(), ElementsAre(2));
  queue_.erase(*c);  // no effect
  EXPECT_EQ(queue_.size(), 1u);
  EXPECT_EQ(queue_.check(), "");
}

}  // namespace
}  // namespace valora::scheduler
