// The table of accepted requests: its bound, the reasons it is closed for, and drains.
#include "serving/request_table.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace valora::serving {
namespace {

std::shared_ptr<ActiveRequest> request_with(RequestHandle handle) {
  auto request = std::make_shared<ActiveRequest>();
  request->handle = handle;
  return request;
}

TEST(RequestTable, BoundCountsRequestsUntilTheyAreScheduled) {
  RequestTable table(2);
  ASSERT_TRUE(table.add(request_with(1)).ok());
  ASSERT_TRUE(table.add(request_with(2)).ok());
  EXPECT_EQ(table.add(request_with(3)).error().code, ErrorCode::kQueueFull);
  EXPECT_EQ(table.find(3), nullptr) << "refused ones are not kept";
  table.scheduled();
  EXPECT_TRUE(table.add(request_with(3)).ok());
  table.take_back(3);
  EXPECT_TRUE(table.add(request_with(4)).ok()) << "its place is free again";
  EXPECT_FALSE(table.add(request_with(5)).ok());
}

TEST(RequestTable, PreparedRequestsCountAsHandedOver) {
  RequestTable table(9);
  for (const RequestHandle handle : {1, 2, 3}) ASSERT_TRUE(table.add(request_with(handle)).ok());
  EXPECT_EQ(table.preparing(), 3);
  EXPECT_EQ(table.handed_over(), 0u);
  table.prepared();
  EXPECT_EQ(table.preparing(), 2);
  EXPECT_EQ(table.handed_over(), 1u);
  EXPECT_EQ(table.all().size(), 3u);
  EXPECT_EQ(table.find(2)->handle, 2u);
  table.ended(1);
  EXPECT_EQ(table.find(1), nullptr);
  EXPECT_EQ(table.handed_over(), 0u);
}

TEST(RequestTable, ShutdownIsToldBeforeFailure) {
  RequestTable table(9);
  const auto refusal = [&table] { return table.add(request_with(1)).error(); };
  table.close(RequestTable::Closed::kFailed);
  EXPECT_EQ(refusal().message, "the engine has stopped after an internal fault");
  table.close(RequestTable::Closed::kShuttingDown);
  EXPECT_EQ(refusal().message, "the server is shutting down");
  table.close(RequestTable::Closed::kFailed);
  EXPECT_EQ(refusal().message, "the server is shutting down");
  EXPECT_EQ(refusal().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(table.empty());
}

TEST(RequestTable, DrainEndsOnceWithTheLastRequest) {
  RequestTable table(9);
  for (const RequestHandle handle : {1, 2}) ASSERT_TRUE(table.add(request_with(handle)).ok());
  int ended = 0;
  table.when_empty([&ended] { ++ended; });
  table.ended(1);
  EXPECT_TRUE(table.take_finished_drains().empty());
  table.ended(2);
  for (const auto& done : table.take_finished_drains()) done();
  EXPECT_EQ(ended, 1);
  EXPECT_TRUE(table.take_finished_drains().empty());
}

TEST(RequestTable, OpenDrainsAreTakenWithTheirRequests) {
  RequestTable table(9);
  ASSERT_TRUE(table.add(request_with(1)).ok());
  EXPECT_TRUE(table.take_open_drains().requests.empty()) << "there is no drain";
  table.when_empty([] {});
  const RequestTable::OpenDrains open = table.take_open_drains();
  EXPECT_EQ(open.done.size(), 1u);
  ASSERT_EQ(open.requests.size(), 1u);
  EXPECT_EQ(open.requests.front()->handle, 1u);
  table.ended(1);
  EXPECT_TRUE(table.take_finished_drains().empty());
}

}  // namespace
}  // namespace valora::serving
