#include "serving/prompts/visual_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "media/processors/input_parts.h"

namespace valora::serving {
namespace {

using models::VisualSpan;
using ::testing::ElementsAre;
using ::testing::FieldsAre;

// Of one patch and two tokens per part; the value of each part's patch.
std::shared_ptr<const media::VisualInput> video(std::vector<float> values) {
  media::VisualInput input;
  input.digest = DigestBuilder().add(std::span<const float>(values)).finish();
  input.grid_t = static_cast<int>(values.size());
  input.grid_h = input.grid_w = input.patch_dim = 1;
  input.tokens = 2 * input.grid_t;
  input.patches = std::move(values);
  input.separable = true;
  cut_parts(input);
  return std::make_shared<const media::VisualInput>(std::move(input));
}

std::vector<float> values(const media::VisualInput& input) {
  return {input.patches.begin(), input.patches.end()};
}

TEST(VisualParts, EachPartHasItsSpan) {
  const auto three = video({1, 2, 3}), one = video({4});
  std::vector<VisualSpan> visual{{5, 6, three}, {20, 2, one}};
  cut_spans(visual);
  ASSERT_EQ(visual.size(), 4u);
  for (int i = 0; i < 3; ++i) {
    const VisualSpan& span = visual[static_cast<size_t>(i)];
    EXPECT_EQ(span.token_begin, 5 + 2 * i);
    EXPECT_EQ(span.rows, 2);
    EXPECT_EQ(span.first_row, 2 * i) << "in the whole input";
    EXPECT_EQ(span.input, three);
    EXPECT_EQ(span.encoded_row(), 0);
    EXPECT_THAT(values(*span.encoded()), ElementsAre(1 + static_cast<float>(i)));
    EXPECT_EQ(span.encoded()->tokens, 2);
  }
  EXPECT_EQ(visual[3].encoded(), one);
  const auto media = media_spans(visual);
  ASSERT_EQ(media.size(), 4u);
  EXPECT_THAT(media[3], FieldsAre(20, 2, one->digest));
}

TEST(VisualParts, FramesWithTextBetweenThem) {
  const auto three = video({1, 2, 3});
  std::vector<VisualSpan> visual{{1, 2, three}, {6, 2, three, 2}, {11, 2, three, 4}};
  cut_spans(visual);
  ASSERT_EQ(visual.size(), 3u);
  EXPECT_EQ(visual[1].part, 1);
  EXPECT_EQ(visual[2].token_begin, 11);
  EXPECT_THAT(values(*visual[2].encoded()), ElementsAre(3));
}

// Rows between which the prompt has text, of an input that is encoded as one.
TEST(VisualParts, OthersStayWhole) {
  auto whole = std::make_shared<media::VisualInput>();
  whole->digest = {1, 2};
  whole->tokens = 6;
  std::vector<VisualSpan> visual{{1, 3, whole}, {6, 3, whole, 3}, {9, 3, whole}, {12, 3, whole, 3}};
  cut_spans(visual);
  ASSERT_EQ(visual.size(), 4u);
  EXPECT_EQ(visual[1].encoded(), whole);
  EXPECT_EQ(visual[1].encoded_row(), 3);
  EXPECT_THAT(media_spans(visual),
              ElementsAre(FieldsAre(1, 8, Digest{1, 2}), FieldsAre(9, 6, Digest{1, 2})));
}

std::vector<Digest> identities(const std::vector<float>& values) {
  std::vector<VisualSpan> visual{{0, 2 * static_cast<int>(values.size()), video(values)}};
  cut_spans(visual);
  std::vector<Digest> digests;
  for (const memory::MediaSpan& span : media_spans(visual)) digests.push_back(span.digest);
  return digests;
}

TEST(VisualParts, EqualPartsInEqualPlacesAreEqual) {
  const auto first = identities({1, 2, 3}), longer = identities({1, 2, 3, 4}),
             other = identities({1, 5, 3}), later = identities({3, 1, 2});
  EXPECT_TRUE(std::equal(first.begin(), first.end(), longer.begin()));
  EXPECT_EQ(first[0], other[0]);
  EXPECT_NE(first[1], other[1]);
  EXPECT_EQ(first[2], other[2]);
  EXPECT_NE(first[0], later[1]) << "its tokens have other positions";
  const auto a = video({1, 2}), b = video({2, 1});
  EXPECT_EQ(a->parts[0]->digest, b->parts[1]->digest) << "its embeddings are the same";
}

std::shared_ptr<const media::VisualInput> changed(const auto& change) {
  auto input = std::make_shared<media::VisualInput>();
  input->grid_t = 2;
  input->grid_h = input->grid_w = 2;
  input->patch_dim = 1;
  input->tokens = 2;
  input->patches.resize(8);
  input->separable = true;
  change(*input);
  cut_parts(*input);
  return input;
}

TEST(VisualParts, DigestsCoverWhatEmbeddingsDependOn) {
  const auto digest = [](const auto& change) { return changed(change)->parts.at(1)->digest; };
  const Digest plain = digest([](auto&) {});
  EXPECT_EQ(plain, digest([](auto& input) { input.digest = {1, 2}; }));
  EXPECT_EQ(plain, digest([](auto& input) { input.seconds_per_grid = 1; }));
  EXPECT_NE(plain, digest([](auto& input) { input.grid_h = 1, input.grid_w = 4; }));
  EXPECT_NE(plain, digest([](auto& input) { input.kind = media::MediaKind::kVideo; }));
  EXPECT_NE(plain, digest([](auto& input) { input.patches.data()[7] = 1; }));
  EXPECT_EQ(plain, digest([](auto& input) { input.patches.data()[0] = 1; })) << "another part";
}

TEST(VisualParts, IdentitiesCoverWhatPositionsDependOn) {
  const auto identity = [](const auto& change) {
    std::vector<VisualSpan> visual{{0, 2, changed(change)}};
    cut_spans(visual);
    return media_spans(visual).at(1).digest;
  };
  const Digest plain = identity([](auto&) {});
  EXPECT_NE(plain, identity([](auto& input) { input.seconds_per_grid = 1; }));
  EXPECT_NE(plain, identity([](auto& input) { input.grid_h = 1, input.grid_w = 4; }));
}

}  // namespace
}  // namespace valora::serving
