#include "serving/adapters/scheduled_adapters.h"

#include <gtest/gtest.h>

namespace valora::serving {
namespace {

AppliedAdapter adapter(adapters::AdapterId id, MergeUse use, float scale = 1) {
  auto made = std::make_shared<LoadedAdapter>();
  made->id = id;
  made->on_decoder = true;
  made->rank = 8;
  made->merge_use = std::make_shared<std::atomic<MergeUse>>(use);
  return {std::move(made), scale};
}

scheduler::Request request_with(const std::vector<AppliedAdapter>& uses) {
  scheduler::Request request;
  set_adapters(uses, request);
  return request;
}

TEST(ScheduledAdapters, AnAdapterThatMixesMergesAtAnyScaleAndInSums) {
  const auto mixes = MergeUse::kAmongOthers;
  EXPECT_EQ(request_with({adapter(3, mixes)}).merge, 3);
  EXPECT_TRUE(request_with({adapter(3, mixes)}).merges_among_others);
  EXPECT_EQ(request_with({adapter(3, mixes, 0.5f)}).merge, 3);
  EXPECT_EQ(request_with({adapter(2, MergeUse::kNever), adapter(3, mixes)}).merge, 3);
}

TEST(ScheduledAdapters, AnAdapterThatMergesAloneMustBeAllThatARequestApplies) {
  const auto alone = MergeUse::kAlone;
  const scheduler::Request own = request_with({adapter(3, alone)});
  EXPECT_EQ(own.merge, 3);
  EXPECT_FALSE(own.merges_among_others);
  EXPECT_EQ(request_with({adapter(3, alone, 0.5f)}).merge, scheduler::kBaseModel);
  EXPECT_EQ(request_with({adapter(3, alone), adapter(4, alone)}).merge, scheduler::kBaseModel);
  EXPECT_EQ(request_with({adapter(4, alone, 0), adapter(3, alone)}).merge, 3);
  EXPECT_EQ(request_with({adapter(3, MergeUse::kNever)}).merge, scheduler::kBaseModel);
}

}  // namespace
}  // namespace valora::serving
