#include "serving/batch/batch_builder.h"

#include <gtest/gtest.h>

namespace valora::serving {
namespace {

std::shared_ptr<LoadedAdapter> segment_adapter(int number, bool on_decoder = true) {
  auto made = std::make_shared<LoadedAdapter>();
  made->digest = DigestBuilder().add(static_cast<float>(number)).finish();
  made->on_decoder = on_decoder;
  return made;
}

class Segments : public ::testing::Test {
 protected:
  void tokens(int64_t begin, int64_t end, const LoadedAdapter* merged,
              const std::vector<AppliedAdapter>& uses) {
    append_difference(uses, merged, begin, end, difference_);
  }
  void expect(const std::vector<AdapterRows>& expected) { EXPECT_EQ(difference_, expected); }

  const std::shared_ptr<LoadedAdapter> a_ = segment_adapter(1), b_ = segment_adapter(2),
                                       visual_ = segment_adapter(3, false);
  std::vector<AdapterRows> difference_;
};

TEST_F(Segments, UnmergedModeListsEachTokensAdapters) {
  tokens(0, 3, nullptr, {});
  tokens(3, 5, nullptr, {{a_, 1}});
  tokens(5, 6, nullptr, {{a_, 1}});
  tokens(6, 8, nullptr, {{a_, 0.5f}, {b_, -2}, {visual_, 1}});
  tokens(8, 9, nullptr, {{b_, 0}});
  expect({{3, 5, a_.get(), 1}, {5, 6, a_.get(), 1}, {6, 8, a_.get(), 0.5f}, {6, 8, b_.get(), -2}});
}

TEST_F(Segments, MergedModeNeedsNone) {
  tokens(0, 3, a_.get(), {{a_, 1}});
  tokens(3, 5, a_.get(), {{a_, 0.75f}, {a_, 0.25f}});
  expect({});
}

TEST_F(Segments, MixtureListsDifferenceFromMergedAdapter) {
  tokens(0, 2, a_.get(), {});
  tokens(2, 4, a_.get(), {{a_, 1}});
  tokens(4, 6, a_.get(), {{b_, 1}});
  tokens(6, 7, a_.get(), {{visual_, 1}});
  tokens(7, 8, a_.get(), {{a_, 0.5f}});
  tokens(8, 9, a_.get(), {{b_, 2}, {a_, 3}});
  expect({{0, 2, a_.get(), -1},
          {4, 6, b_.get(), 1},
          {4, 6, a_.get(), -1},
          {6, 7, a_.get(), -1},
          {7, 8, a_.get(), -0.5f},
          {8, 9, b_.get(), 2},
          {8, 9, a_.get(), 2}});
}

TEST_F(Segments, AdaptersAreComparedByContentNotName) {
  const auto again = segment_adapter(1), other = segment_adapter(4);
  tokens(0, 2, a_.get(), {{again, 1}});
  tokens(2, 3, a_.get(), {{other, 1}});
  expect({{2, 3, other.get(), 1}, {2, 3, a_.get(), -1}});
}

}  // namespace
}  // namespace valora::serving
