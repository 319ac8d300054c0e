#include "engine/segments.h"

#include <gtest/gtest.h>

#include <tuple>

#include "engine/adapter_tensors.h"

namespace valora {
namespace {

std::shared_ptr<serving::LoadedAdapter> adapter(int number, bool on_decoder = true) {
  auto made = std::make_shared<serving::LoadedAdapter>();
  made->tensors = std::make_shared<AdapterTensors>(std::make_shared<ops::AdapterWeights>());
  made->digest = DigestBuilder().add(static_cast<float>(number)).finish();
  made->on_decoder = on_decoder;
  return made;
}

class Segments : public ::testing::Test {
 protected:
  using Expected = std::tuple<int64_t, int64_t, const serving::LoadedAdapter*, float>;
  void tokens(int64_t begin, int64_t end, const serving::LoadedAdapter* merged,
              const std::vector<serving::AppliedAdapter>& uses) {
    append_segments(uses, merged, begin, end, lora_);
  }
  void expect(const std::vector<Expected>& expected) {
    ASSERT_EQ(lora_.segments().size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      const kernels::LoraSegment& s = lora_.segments()[i];
      const auto& [begin, end, of, coefficient] = expected[i];
      EXPECT_EQ(s.token_begin, begin) << i;
      EXPECT_EQ(s.token_end, end) << i;
      EXPECT_EQ(&lora_.adapter(i), &weights_of(*of)) << i;
      EXPECT_EQ(s.coefficient, coefficient) << i;
    }
  }

  const std::shared_ptr<serving::LoadedAdapter> a_ = adapter(1), b_ = adapter(2),
                                                visual_ = adapter(3, false);
  ops::LoraBatch lora_;
};

TEST_F(Segments, UnmergedEveryTokenHasItsOwnAdapters) {
  tokens(0, 3, nullptr, {});
  tokens(3, 5, nullptr, {{a_, 1}});
  tokens(5, 6, nullptr, {{a_, 1}});
  tokens(6, 8, nullptr, {{a_, 0.5f}, {b_, -2}, {visual_, 1}});
  tokens(8, 9, nullptr, {{b_, 0}});
  expect({{3, 6, a_.get(), 1}, {6, 8, a_.get(), 0.5f}, {6, 8, b_.get(), -2}});
}

TEST_F(Segments, MergedNeedsNone) {
  tokens(0, 3, a_.get(), {{a_, 1}});
  tokens(3, 5, a_.get(), {{a_, 0.75f}, {a_, 0.25f}});
  expect({});
}

TEST_F(Segments, MixedEveryTokenHasWhatItDiffersBy) {
  tokens(0, 2, a_.get(), {});
  tokens(2, 4, a_.get(), {{a_, 1}});
  tokens(4, 6, a_.get(), {{b_, 1}});
  tokens(6, 7, a_.get(), {{visual_, 1}});
  tokens(7, 8, a_.get(), {{a_, 0.5f}});
  tokens(8, 9, a_.get(), {{b_, 2}, {a_, 3}});
  expect({{0, 2, a_.get(), -1},
          {4, 6, b_.get(), 1},
          {4, 7, a_.get(), -1},
          {7, 8, a_.get(), -0.5f},
          {8, 9, b_.get(), 2},
          {8, 9, a_.get(), 2}});
}

TEST_F(Segments, ANameLoadedAgainIsTheSameAdapterOnlyWithTheSameContent) {
  const auto again = adapter(1), other = adapter(4);
  tokens(0, 2, a_.get(), {{again, 1}});
  tokens(2, 3, a_.get(), {{other, 1}});
  expect({{2, 3, other.get(), 1}, {2, 3, a_.get(), -1}});
}

}  // namespace
}  // namespace valora
