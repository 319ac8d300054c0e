#include "lab/serve/workload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/json/json.h"

namespace valora::bench {
namespace {

PromptMaker prompts() { return PromptMaker::make({11, 12, 13, 14, 15, 16}, 3).value(); }

Json body_of(const BenchRequest& request) { return parse_json(request.body, "body").value(); }

TEST(Workload, TokenPromptsAreExactDistinctAndSeeded) {
  const ServeLoad load{.input_tokens = {40, 40}, .output_tokens = {3, 9}};
  const auto requests = make_requests(load, {"a", "b"}, prompts(), 50, 1).value();
  ASSERT_EQ(requests.size(), 50u);
  std::set<std::string> seen;
  std::set<int> lengths;
  for (const BenchRequest& request : requests) {
    EXPECT_EQ(request.path, "/v1/completions");
    const Json body = body_of(request);
    EXPECT_EQ(body["model"], request.model);
    EXPECT_EQ(body["max_tokens"], request.output_tokens);
    EXPECT_EQ(body["ignore_eos"], true);
    ASSERT_EQ(body["prompt"].size(), 40u);
    for (const Json& id : body["prompt"]) EXPECT_TRUE(id >= 11 && id <= 16);
    seen.insert(body["prompt"].dump());
    lengths.insert(request.output_tokens);
  }
  EXPECT_EQ(seen.size(), 50u);
  EXPECT_EQ(*lengths.begin(), 3);
  EXPECT_EQ(*lengths.rbegin(), 9);
  EXPECT_EQ(make_requests(load, {"a", "b"}, prompts(), 50, 1).value()[7].body, requests[7].body);
  EXPECT_NE(make_requests(load, {"a", "b"}, prompts(), 50, 2).value()[7].body, requests[7].body);
}

std::vector<std::string> image_urls(const ServeLoad& load, int count) {
  std::vector<std::string> urls;
  const auto requests = make_requests(load, {"a"}, prompts(), count, 1).value();
  for (const BenchRequest& request : requests) {
    const Json body = body_of(request);
    for (const Json& part : body["messages"][0]["content"])
      if (part["type"] == "image_url") urls.push_back(part["image_url"]["url"]);
  }
  return urls;
}

TEST(Workload, ImagesAreDistinctUnlessRepeated) {
  ServeLoad load;
  load.images = {.count = 2, .width = 40, .height = 24};
  const auto urls = image_urls(load, 5);
  ASSERT_EQ(urls.size(), 10u);
  EXPECT_EQ(std::set(urls.begin(), urls.end()).size(), 10u);
  EXPECT_TRUE(
      urls[0].starts_with("data:image/jpeg;base64,/9j/"));  // a JPEG's first bytes: FF D8 FF
  load.images.repeat = true;
  const auto repeated = image_urls(load, 5);
  EXPECT_EQ(std::set(repeated.begin(), repeated.end()).size(), 2u);
}

TEST(Workload, WritesValidPngs) {
  ServeLoad load;
  load.images = {.count = 1, .width = 33, .height = 17, .format = ImageFormat::kPng};
  EXPECT_TRUE(image_urls(load, 1)[0].starts_with("data:image/png;base64,iVBORw0KGgo"));
}

TEST(Workload, WordsReachTheRequestedTokenCount) {
  const std::string text = prompts().text(20, 5);  // two tokens per word
  EXPECT_EQ(std::count(text.begin(), text.end(), ' '), 10);
  EXPECT_EQ(text, random_words(10, 5));
}

TEST(Workload, AsksAdaptersWithHeadsForText) {
  EXPECT_EQ(body_of(make_requests({}, {"a"}, prompts(), 1, 1).value()[0])["head"], "");
}

}  // namespace
}  // namespace valora::bench
