#include "text/decoders/decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace valora::text {
namespace {

using ::testing::HasSubstr;
using Tokens = std::vector<std::string>;

constexpr const char* kLlamaDecoder = R"({"type": "Sequence", "decoders": [
    {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
    {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})";

Decoder decoder(const char* json) { return Decoder::read(Json::parse(json), "decoder").value(); }

std::string decoded(const char* json, const Tokens& tokens) {
  const Decoder d = decoder(json);
  DecodeStream stream(d);
  std::string text;
  for (const std::string& token : tokens) text += stream.push(token);
  return text + stream.finish();
}

std::string refusal(const char* json) {
  const auto d = Decoder::read(Json::parse(json), "decoder");
  return d.ok() ? "accepted" : d.error().message;
}

// Expected texts come from tokenizers 0.22.
TEST(Decoder, LlamaStripsOneSpaceFromTheTextOnly) {
  EXPECT_EQ(decoded(kLlamaDecoder, {"▁the", "▁▁a", "b"}), "the  ab");
  EXPECT_EQ(decoded(kLlamaDecoder, {"▁▁", "▁a"}), "  a");
  EXPECT_EQ(decoded(kLlamaDecoder, {"▁", "▁a"}), " a");
  EXPECT_EQ(decoded(kLlamaDecoder, {"a", "▁"}), "a ");
  EXPECT_EQ(decoded(kLlamaDecoder, {"<0x20>", "<0x20>"}), " ");
  EXPECT_EQ(decoded(kLlamaDecoder, {}), "");
}

TEST(Decoder, InvalidUtf8RunIsReplacedByteByByte) {
  EXPECT_EQ(decoded(kLlamaDecoder, {"a", "<0xE5>", "<0xAD>", "<0x97>", "b"}), "a字b");
  EXPECT_EQ(decoded(kLlamaDecoder, {"a", "<0xE5>", "<0xAD>", "b"}), "a��b");
  EXPECT_EQ(decoded(kLlamaDecoder, {"<0x0A>", "<0xFF>", "<0x0A>", "b", "<0x0A>"}), "���b\n");
  EXPECT_EQ(decoded(kLlamaDecoder, {"<0x0A>", "<0xE5>"}), "��");
  EXPECT_EQ(decoded(kLlamaDecoder, {"<0x4a>", "<0x+7>", "<0x4G>", "<0xé>"}), "J\a<0x4G><0xé>");
}

TEST(DecodeStream, HoldsARunOfBytesUntilItsEnd) {
  const Decoder d = decoder(kLlamaDecoder);
  DecodeStream stream(d);
  EXPECT_EQ(stream.push("▁a"), "a");
  EXPECT_EQ(stream.push("<0x0A>"), "");
  EXPECT_EQ(stream.provisional(), "\n");
  EXPECT_EQ(stream.push("<0xC3>"), "");
  EXPECT_EQ(stream.provisional(), "");  // half a character
  EXPECT_EQ(stream.push("<0xA9>"), "");
  EXPECT_EQ(stream.provisional(), "\né");
  EXPECT_EQ(stream.provisional(), "\né");
  EXPECT_EQ(stream.push("b"), "\néb");
  EXPECT_EQ(stream.provisional(), "");
  EXPECT_EQ(stream.push("<0x0A>"), "");
  EXPECT_EQ(stream.push("<0x80>"), "��");  // invalid whatever follows
  EXPECT_EQ(stream.push("<0x0A>"), "�");
  EXPECT_EQ(stream.finish(), "");
}

TEST(DecodeStream, ProvisionalTextPassesLaterParts) {
  const Decoder d = decoder(kLlamaDecoder);
  DecodeStream stream(d);
  EXPECT_EQ(stream.push("<0x20>"), "");
  EXPECT_EQ(stream.push("<0x61>"), "");
  EXPECT_EQ(stream.provisional(), "a");
  EXPECT_EQ(stream.finish(), "a");
}

TEST(Decoder, UnjoinedTokensAreStrippedOneByOne) {
  constexpr const char* kStrip = R"({"type": "Strip", "content": "é", "start": 2, "stop": 0})";
  EXPECT_EQ(decoded(kStrip, {"ééé", "é", "aé", "éa"}), "éaéa");
}

TEST(Decoder, MetaspaceDropsTheFirstTokensSpaces) {
  EXPECT_EQ(decoded(R"({"type": "Metaspace", "replacement": "▁"})", {"▁a▁", "▁b"}), "a b");
  EXPECT_EQ(decoded(R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never"})",
                    {"▁a", "▁b"}),
            " a b");
}

TEST(Decoder, BytesEqualThoseInMiddleOfText) {
  const Decoder llama = decoder(kLlamaDecoder);
  EXPECT_EQ(llama.bytes("▁the"), " the");
  EXPECT_EQ(llama.bytes("<0xE5>"), "\xE5");
  EXPECT_EQ(decoder(R"({"type": "Metaspace", "replacement": "▁"})").bytes("▁the"), " the");
  EXPECT_EQ(decoder(R"({"type": "ByteLevel"})").bytes("Ġ\u00C3"), " \xC3");
}

TEST(Decoder, RefusalNamesDecoder) {
  EXPECT_THAT(refusal("null"), HasSubstr("without a decoder"));
  EXPECT_THAT(refusal(R"({"type": "CTC"})"), HasSubstr("decoder \"CTC\" is not supported"));
  EXPECT_THAT(refusal(R"({"type": "Fuse", "x": 1})"), HasSubstr("unknown field \"x\""));
  EXPECT_THAT(
      refusal(R"({"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "ByteFallback"}]})"),
      HasSubstr("decoders[1]: decoder \"ByteFallback\" after"));
  EXPECT_THAT(refusal(R"({"type": "Strip", "content": " ", "start": 0, "stop": 1})"),
              HasSubstr("\"stop\""));
  EXPECT_THAT(refusal(R"({"type": "Strip", "content": " ", "start": -1, "stop": 0})"),
              HasSubstr("\"start\""));
  EXPECT_THAT(refusal(R"({"type": "Strip", "content": "ab", "start": 0, "stop": 0})"),
              HasSubstr("one character"));
  EXPECT_THAT(refusal(R"({"type": "Replace", "pattern": {"String": ""}, "content": "x"})"),
              HasSubstr("is empty"));
  EXPECT_THAT(refusal(R"({"type": "Replace", "pattern": {"Regex": "x"}, "content": "y"})"),
              HasSubstr("regular expression is not supported"));
  EXPECT_THAT(
      refusal(R"({"type": "Replace", "pattern": {"String": "x"}, "content": "0123456789abcdefg"})"),
      HasSubstr("16 times longer"));
  EXPECT_THAT(refusal(R"({"type": "Metaspace", "replacement": "▁", "add_prefix_space": false})"),
              HasSubstr("does not match"));
}

TEST(Decoder, TooManyPartsAreRefused) {
  Json many = {{"type", "Sequence"}, {"decoders", Json(40, Json{{"type", "Fuse"}})}};
  Json nested = {{"type", "Sequence"}, {"decoders", {many, many}}};
  EXPECT_THAT(Decoder::read(nested, "decoder").error().message, HasSubstr("more than 64 parts"));
}

}  // namespace
}  // namespace valora::text
