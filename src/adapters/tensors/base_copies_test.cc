// Tensors of the base model in an adapter's file.
#include "adapters/tensors/base_copies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "adapters/testing/adapter_folder.h"
#include "adapters/testing/fake_base.h"

namespace valora::adapters {
namespace {

using testing::AdapterFolder;
using testing::f32_tensor;
using testing::FakeBase;
using ::testing::HasSubstr;
using testing::kHidden;

const std::string kHead = AdapterFolder::key("lm_head", "weight");
const std::string kNorm = AdapterFolder::key("model.norm", "weight");

class BaseCopiesTest : public ::testing::Test {
 protected:
  BaseCopiesTest() {
    for (size_t i = 0; i < head_.size(); ++i) head_[i] = static_cast<float>(i);
    base_.add("lm_head.weight", kHeadShape, head_);
    base_.add("model.norm.weight", {kHidden}, {1, 2, 3, 4});
    plain_ = folder_.read().value().digest;
    folder_.tensors[kHead] = f32_tensor(kHeadShape, head_);
    folder_.tensors[kNorm] = f32_tensor({kHidden}, {1, 2, 3, 4});
  }
  Result<AdapterSpec> read(const BaseWeights* base, bool values = true) {
    folder_.write();
    const std::string dir = folder_.dir.path();
    const ModuleTable table = testing::small_table();
    if (!base) return values ? read_adapter(dir, table, {}) : read_adapter_headers(dir, table, {});
    return values ? read_adapter(dir, table, {}, *base)
                  : read_adapter_headers(dir, table, {}, *base);
  }
  std::string refusal(const BaseWeights* base, bool values = true) {
    const auto spec = read(base, values);
    return spec.ok() ? "accepted" : spec.error().message;
  }

  const std::vector<int64_t> kHeadShape{200000, kHidden};  // several pieces
  std::vector<float> head_ = std::vector<float>(200000 * kHidden);
  FakeBase base_;
  AdapterFolder folder_;
  Digest plain_;  // digest of the adapter without copies
};

TEST_F(BaseCopiesTest, EqualCopiesChangeNothing) {
  const auto spec = read(&base_);
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  EXPECT_EQ(spec->digest, plain_);
  EXPECT_EQ(spec->bytes, 4u * (2 * 2 * 2 * kHidden));
  EXPECT_TRUE(spec->heads.empty());
  EXPECT_TRUE(spec->warnings.empty());
  EXPECT_TRUE(spec->file->find(kHead)->bytes.empty());  // not in memory
}

TEST_F(BaseCopiesTest, ChangedCopyIsRefusedByName) {
  folder_.tensors[kNorm] = f32_tensor({kHidden}, {1, 2, 3, 5});
  for (const bool values : {true, false})
    EXPECT_EQ(refusal(&base_, values),
              "the adapter adapts model.norm (its whole weight: it differs from the base model's), "
              "which this version cannot serve");
}

TEST_F(BaseCopiesTest, ChangedOutputLayerBecomesPart) {
  head_.back() += 1;
  folder_.tensors[kHead] = f32_tensor(kHeadShape, head_);
  for (const bool values : {true, false}) {
    const auto spec = read(&base_, values);
    ASSERT_TRUE(spec.ok()) << spec.error().message;
    ASSERT_EQ(spec->parts.size(), 1u);
    EXPECT_EQ(spec->parts[0].kind, PartKind::kHead);
    EXPECT_NE(spec->digest, plain_);
    EXPECT_TRUE(spec->file->find(kHead)->bytes.empty());  // not in memory
  }
  head_.front() = std::numeric_limits<float>::infinity();
  folder_.tensors[kHead] = f32_tensor(kHeadShape, head_);
  EXPECT_THAT(refusal(&base_), HasSubstr("lm_head.weight\" has values that are not finite"));
}

TEST_F(BaseCopiesTest, WrongShapeIsRefusedBeforeReadingValues) {
  folder_.tensors[kHead] = testing::filled({11, kHidden + 1}, 0);
  folder_.tensors[kNorm] = testing::filled({kHidden}, 0);
  for (const bool values : {false, true})
    EXPECT_THAT(refusal(&base_, values),
                HasSubstr("(its whole weight of shape [11, 5], not the base model's [200000, 4])"));
  folder_.tensors.erase(kHead);
  folder_.tensors[kNorm] = testing::filled({kHidden + 1}, 0);
  EXPECT_THAT(refusal(&base_),
              HasSubstr("(its whole weight of shape [5], not the base model's [4])"));
}

TEST_F(BaseCopiesTest, CopiesWithoutBaseAreRefused) {
  EXPECT_THAT(refusal(nullptr), HasSubstr("model.norm"));
  const FakeBase empty;
  EXPECT_THAT(refusal(&empty), HasSubstr("model.norm"));
}

TEST_F(BaseCopiesTest, RereadSkipsCopies) {
  folder_.add_head("score", 3);
  const Digest first = read(&base_)->digest;
  const auto again = read_adapter_again(folder_.dir.path(), testing::small_table(), {}, true);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->digest, first);
  ASSERT_EQ(again->heads.size(), 1u);
  EXPECT_EQ(again->heads[0].name, "score");
}

TEST_F(BaseCopiesTest, ModuleToSaveMayEqualBase) {
  folder_.config["modules_to_save"] = {"lm_head"};
  const auto spec = read(&base_);
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  EXPECT_TRUE(spec->warnings.empty());
  folder_.tensors.erase(kHead);
  EXPECT_THAT(refusal(&base_), HasSubstr("modules_to_save names lm_head, that is lm_head (its "
                                         "whole weight), for which the file has no tensors"));
}

TEST_F(BaseCopiesTest, HeadsAreNotCopies) {
  folder_.add_head("score", 3);
  const auto spec = read(&base_);
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  ASSERT_EQ(spec->heads.size(), 1u);
  EXPECT_EQ(spec->heads[0].weight.bytes.size(), 4u * 3 * kHidden);
}

TEST_F(BaseCopiesTest, FileOfOnlyCopiesIsRefused) {
  folder_.tensors.erase(folder_.tensors.begin(), folder_.tensors.end());
  folder_.tensors[kHead] = f32_tensor(kHeadShape, head_);
  folder_.config["target_modules"] = Json::array();
  EXPECT_THAT(refusal(&base_), HasSubstr("is empty"));
}

}  // namespace
}  // namespace valora::adapters
