#include "engine/adapters/head_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace valora {
namespace {

using ::testing::HasSubstr;

// A head whose values are in memory of its own.
struct OwnHead {
  OwnHead(float first, std::vector<std::string> labels) {
    for (size_t i = 0; i < labels.size() * 2; ++i) values.push_back(first + static_cast<float>(i));
    head.name = "score";
    head.weight = {DType::kF32,
                   {static_cast<int64_t>(labels.size()), 2},
                   {reinterpret_cast<const uint8_t*>(values.data()), values.size() * 4}};
    head.labels = std::move(labels);
  }
  std::vector<adapters::TaskHead> heads() const { return {head}; }

  std::vector<float> values;
  adapters::TaskHead head;
};

TEST(HeadStore, EqualHeadsShareTensorsAndLabels) {
  HeadStore store(1 << 20, at::kCPU);
  const OwnHead a(1, {"x", "y"}), b(1, {"x", "y"}), other(1, {"x", "z"});
  auto first = a.heads(), second = b.heads(), third = other.heads();
  const auto one = store.add(first);
  const int64_t bytes = store.bytes();
  EXPECT_GT(bytes, 4 * 4);
  const auto two = store.add(second);
  EXPECT_EQ((*one)[0], (*two)[0]);
  EXPECT_EQ(&first[0].labels.list(), &second[0].labels.list());
  EXPECT_EQ(store.bytes(), bytes);
  const auto three = store.add(third);
  EXPECT_NE((*one)[0], (*three)[0]);
  EXPECT_EQ(store.bytes(), 2 * bytes);
  EXPECT_EQ((*one)[0]->weight.data_ptr<float>()[3], 4);
}

TEST(HeadStore, RefusesHeadsBeyondTheLimitUntilOthersAreGone) {
  const OwnHead small(1, {"x", "y"}), other(2, {"x", "y"});
  auto first = small.heads(), second = other.heads();
  HeadStore measure(1 << 20, at::kCPU);
  ASSERT_TRUE(measure.add(first).ok());
  auto again = small.heads();
  auto held = measure.add(again);
  HeadStore store(measure.bytes(), at::kCPU);
  auto one = store.add(first);
  ASSERT_TRUE(one.ok());
  const auto full = store.add(second);
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code, ErrorCode::kUnprocessable);
  EXPECT_THAT(full.error().message, HasSubstr("the head score takes"));
  EXPECT_THAT(full.error().message, HasSubstr("raise --pool-memory"));
  one = Error{};
  EXPECT_EQ(store.bytes(), 0);
  EXPECT_TRUE(store.add(second).ok());
}

// Requests may keep a head longer than the engine keeps its store.
TEST(HeadStore, HeadsOutliveTheStore) {
  const OwnHead head(1, {"x", "y"});
  auto heads = head.heads();
  auto store = std::make_unique<HeadStore>(1 << 20, at::kCPU);
  const auto tensors = *store->add(heads);
  store.reset();
  EXPECT_EQ(tensors[0]->weight.data_ptr<float>()[0], 1);
}

TEST(HeadStore, LimitIsAQuarterOfThePool) {
  EXPECT_EQ(HeadStore::limit_beside(int64_t{8} << 30), int64_t{2} << 30);
  EXPECT_EQ(HeadStore::limit_beside(1 << 20), int64_t{64} << 20);
}

}  // namespace
}  // namespace valora
