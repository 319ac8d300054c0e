#include "lab/serve/answer_reader.h"

#include <gtest/gtest.h>

#include <vector>

namespace valora::bench {
namespace {

std::string event(const std::string& json) { return "data: " + json + "\r\n\r\n"; }
std::string piece(const std::string& text, int tokens) {
  return event(R"({"choices":[{"text":")" + text +
               R"("}],"usage":{"prompt_tokens":7,"completion_tokens":)" + std::to_string(tokens) +
               "}}");
}
const std::string kEnd =
    event(
        R"({"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":4}}})") +
    event("[DONE]");

TEST(SseReader, JoinsEventsSplitAnywhere) {
  const std::string text =
      ": comment\n\ndata: one\n\nevent: x\r\ndata:two\r\ndata: lines\r\n\r\ndata: last\n\n";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    SseReader reader;
    std::vector<std::string> events;
    const auto keep = [&](std::string_view data) { events.emplace_back(data); };
    reader.feed(std::string_view(text).substr(0, cut), keep);
    reader.feed(std::string_view(text).substr(cut), keep);
    EXPECT_EQ(events, (std::vector<std::string>{"one", "two\nlines", "last"})) << cut;
  }
}

TEST(AnswerReader, TimesOnlyPiecesWithTokens) {
  RequestRecord record;
  AnswerReader reader(record, true);
  reader.feed(piece("a", 1), 200, 2);
  reader.feed(piece("", 2), 200, 2.5);  // an incomplete character: a token without text
  reader.feed(piece("é", 2), 200, 2.6);
  reader.feed(piece("c", 3), 200, 4);
  reader.feed(kEnd, 200, 4.5);
  reader.finish(200, "", 5);
  EXPECT_EQ(record.error, "");
  EXPECT_EQ(record.first_token, 2);
  EXPECT_EQ(record.gaps, (std::vector<double>{0.5, 1.5}));
  EXPECT_EQ(record.ended, 5);
  EXPECT_EQ(record.prompt_tokens, 7);
  EXPECT_EQ(record.cached_tokens, 4);
  EXPECT_EQ(record.completion_tokens, 3);
}

TEST(AnswerReader, UsesTextIfTokensAreCountedOnlyAtTheEnd) {
  RequestRecord record;
  AnswerReader reader(record, true);
  reader.feed(event(R"({"choices":[{"delta":{"role":"assistant","content":""}}],"usage":null})"),
              200, 1);
  reader.feed(event(R"({"choices":[{"delta":{"content":"a"}}]})"), 200, 2);
  reader.feed(event(R"({"choices":[{"delta":{"content":"b"}}]})"), 200, 3);
  reader.feed(kEnd, 200, 4);
  reader.finish(200, "", 4);
  EXPECT_EQ(record.first_token, 2);
  EXPECT_EQ(record.gaps, (std::vector<double>{1}));
  EXPECT_EQ(record.completion_tokens, 3);
}

TEST(AnswerReader, WholeAnswerHasNoFirstTokenTime) {
  RequestRecord record;
  AnswerReader reader(record, false);
  reader.feed(R"({"choices":[{"text":"ab"}],"usage":{"prompt_tok)", 200, 1);
  reader.feed(R"(ens":5,"completion_tokens":2}})", 200, 2);
  reader.finish(200, "", 3);
  EXPECT_EQ(record.error, "");
  EXPECT_EQ(record.first_token, 0);
  EXPECT_EQ(record.completion_tokens, 2);
}

std::string error_after(const std::string& bytes, int status, const std::string& failure = "") {
  RequestRecord record;
  AnswerReader reader(record, true);
  reader.feed(bytes, status, 1);
  reader.finish(status, failure, 2);
  return record.error;
}

TEST(AnswerReader, NamesTheError) {
  EXPECT_EQ(error_after(R"({"error":{"message":"the queue is full"}})", 429),
            "HTTP 429: the queue is full");
  EXPECT_EQ(error_after("<html>", 502), "HTTP 502: <html>");
  EXPECT_EQ(error_after("", 0, "could not connect"), "could not connect");
  EXPECT_EQ(error_after(piece("a", 1), 200), "the stream ended early");
  EXPECT_EQ(error_after(event("{"), 200), "invalid event in the stream");
  EXPECT_EQ(
      error_after(
          piece("a", 1) + event(R"({"error":{"message":"out of memory"}})") + event("[DONE]"), 200),
      "in the stream: out of memory");
}

}  // namespace
}  // namespace valora::bench
