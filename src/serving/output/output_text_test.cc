#include "serving/output/output_text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "text/testing/tiny_tokenizer.h"

namespace valora::serving {
namespace {

OutputText make(std::vector<std::string> stop, bool include_stop = false) {
  return OutputText(text::tiny_tokenizer(), true, make_stop_strings(std::move(stop)), include_stop);
}

TEST(OutputText, SequencesShareTheirStopStrings) {
  const StopStrings stop = make_stop_strings({"", "end"});
  ASSERT_EQ(stop->size(), 1);
  const OutputText one(text::tiny_tokenizer(), true, stop, false),
      two(text::tiny_tokenizer(), true, stop, false);
  EXPECT_EQ(stop.use_count(), 3);
}

// One token per byte. Returns the output of each push and of finish, joined by "|", with "!" and
// the stop string after a match.
std::string shown(OutputText text, const std::string& bytes, size_t min_tokens = 0) {
  std::string all;
  size_t count = 0;
  for (const unsigned char byte : bytes) {
    const auto piece = text.push(byte, ++count >= min_tokens);
    all += piece.text;
    if (piece.stop) return all + "!" + *piece.stop;
    all += "|";
  }
  const auto rest = text.finish(count >= min_tokens);
  return all + rest.text + (rest.stop ? "!" + *rest.stop : "");
}

TEST(OutputText, ShowsTextAtOnceWithoutStopStrings) { EXPECT_EQ(shown(make({}), "xyz"), "x|y|z|"); }

TEST(OutputText, HoldsBackPossibleStop) {
  EXPECT_EQ(shown(make({"END"}), "aENb"), "a|||ENb|");
  EXPECT_EQ(shown(make({"END"}), "aENDb"), "a|||!END");
  EXPECT_EQ(shown(make({"END"}), "EEND"), "|E||!END");
  EXPECT_EQ(shown(make({"END"}), "aEN"), "a|||EN");
  EXPECT_EQ(shown(make({"aab"}), "aaab"), "||a|!aab");
}

TEST(OutputText, StopIsIncludedOnlyOnRequest) {
  EXPECT_EQ(shown(make({"END"}, true), "aENDb"), "a|||END!END");
}

TEST(OutputText, TheEarliestOfOverlappingStopsEnds) {
  EXPECT_EQ(shown(make({"bcd", "abcde", "zz"}), "xabcdef"), "x||||a!bcd");
  EXPECT_EQ(shown(make({"c", "bc"}), "abc"), "a||!bc");
  EXPECT_EQ(shown(make({"", "c"}), "abc"), "a|b|!c");
}

TEST(OutputText, AStopWithinOneTokenCutsIt) {
  auto text = make({"b"});
  const auto piece = text.push(257, true);  // "abc"
  EXPECT_EQ(piece.text, "a");
  EXPECT_EQ(piece.stop, "b");
}

TEST(OutputText, StopMayBeginButNotEndBeforeMinTokens) {
  EXPECT_EQ(shown(make({"b"}), "abcb", 3), "a|b|c|!b");
  EXPECT_EQ(shown(make({"bc"}), "abcd", 3), "a||!bc");
  EXPECT_EQ(shown(make({"bc"}), "abcd", 4), "a||bc|d|");
  EXPECT_EQ(shown(make({"b", "abZ"}), "abQ", 3), "||abQ|") << "that b came too early";
}

TEST(OutputText, EmitsOnlyWholeCharacters) {
  EXPECT_EQ(shown(make({}), "a\xC3\xA9"), "a||é|");
  EXPECT_EQ(shown(make({"é"}), "a\xC3\xA9"), "a||!é");
  EXPECT_EQ(shown(make({}), "a\xC3"), "a||\xEF\xBF\xBD");
  EXPECT_EQ(shown(make({"\xEF\xBF\xBD"}), "a\xC3"), "a||!\xEF\xBF\xBD")
      << "the end of the sequence completes it";
}

// Token ids: byte values; 256 is "x". A run of byte tokens is final only once the next ordinary
// token arrives.
std::shared_ptr<const text::Tokenizer> byte_fallback_tokenizer() {
  Json json = text::tiny_tokenizer_json();
  Json vocab = {{"x", 256}};
  for (int byte = 0; byte < 256; ++byte) vocab[fmt::format("<0x{:02X}>", byte)] = byte;
  json["model"] = {
      {"type", "BPE"}, {"byte_fallback", true}, {"vocab", vocab}, {"merges", Json::array()}};
  json["decoder"] = {{"type", "Sequence"},
                     {"decoders", {{{"type", "ByteFallback"}}, {{"type", "Fuse"}}}}};
  for (const char* part : {"normalizer", "pre_tokenizer", "post_processor"}) json[part] = nullptr;
  json["added_tokens"] = Json::array();
  return text::Tokenizer::from_json(json, "tokenizer").value();
}

TEST(OutputText, StopInProvisionalBytesEndsAtOnce) {
  OutputText text(byte_fallback_tokenizer(), true, make_stop_strings({"\n"}), false);
  EXPECT_EQ(text.push(256, true).text, "x");
  EXPECT_FALSE(text.push('a', true).stop);
  const auto piece = text.push('\n', true);
  EXPECT_EQ(piece.text, "a");
  EXPECT_EQ(piece.stop, "\n");
  OutputText across(byte_fallback_tokenizer(), true, make_stop_strings({"xé"}), true);
  EXPECT_EQ(across.push(256, true).text, "");
  EXPECT_FALSE(across.push(0xC3, true).stop);
  EXPECT_EQ(across.push(0xA9, true).text, "xé");
}

TEST(OutputText, SpecialTokensAreLeftOut) {
  auto text = make({});
  EXPECT_EQ(text.push(260, true).text, "");
  OutputText all(text::tiny_tokenizer(), false, make_stop_strings({}), false);
  EXPECT_EQ(all.push(260, true).text, "<|im_end|>");
}

}  // namespace
}  // namespace valora::serving
