#include "server/metrics/adapter_activity.h"

#include <gtest/gtest.h>

namespace valora::server {
namespace {

using Names = std::set<std::string>;

TEST(AdapterActivity, TracksARequestFromAcceptanceToCompletion) {
  const auto activity = std::make_shared<AdapterActivity>();
  AdapterActivity::Request first(activity, {{"a", 1}, {"b", 1}});
  EXPECT_EQ(activity->waiting(), Names());  // the request may still be rejected
  first.accepted();
  EXPECT_EQ(activity->waiting(), (Names{"a", "b"}));
  {
    AdapterActivity::Request second(activity, {{"b", 1}});
    second.started();
    second.accepted();
    EXPECT_EQ(activity->running(), Names{"b"});
  }
  EXPECT_EQ(activity->running(), Names());
  first.started();
  EXPECT_EQ(activity->waiting(), Names());
  EXPECT_EQ(activity->running(), (Names{"a", "b"}));
  first.ended();
  first.started();
  EXPECT_EQ(activity->running(), Names());
}

}  // namespace
}  // namespace valora::server
