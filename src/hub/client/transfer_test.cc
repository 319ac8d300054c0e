#include "hub/client/transfer.h"

#include <gmock/gmock.h>

#include "hub/client/refusals.h"
#include "hub/client/retries.h"

namespace valora::hub {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Origin, IsSchemeHostAndPort) {
  EXPECT_TRUE(same_origin("https://huggingface.co/a", "https://HuggingFace.co:443/b?c"));
  for (const char* other :
       {"http://huggingface.co/a", "https://cdn.huggingface.co/a", "https://huggingface.co:8443/",
        "https://huggingface.co.evil.org/", "https://huggingface.co@evil.org/", "", "nothing"})
    EXPECT_FALSE(same_origin(other, "https://huggingface.co")) << other;
}

TEST(ShownUrl, HasNoSignature) {
  EXPECT_EQ(shown_url("https://cdn/x?Signature=secret"), "https://cdn/x");
}

TEST(RetriesTest, WaitLongerUntilTheyGiveUp) {
  Retries retries;
  Reply busy{.status = 503};
  EXPECT_EQ(retries.after(busy, false)->count(), 100);
  EXPECT_EQ(retries.after(busy, false)->count(), 400);
  busy.headers["retry-after"] = "3";
  EXPECT_EQ(retries.after(busy, false)->count(), 3000);
  busy.headers["retry-after"] = "86400";
  EXPECT_FALSE(retries.after(busy, true));
  EXPECT_FALSE(Retries().after({.status = 404}, false));
  EXPECT_FALSE(Retries().after({.code = CURLE_UNSUPPORTED_PROTOCOL}, false));
  Retries cut;
  const Reply partial{.code = CURLE_PARTIAL_FILE};
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(cut.after(partial, false));
  EXPECT_FALSE(cut.after(partial, false));
  EXPECT_TRUE(cut.after(partial, true));
}

std::string refused(Reply reply, const std::string& token = "") {
  HubSettings settings;
  settings.token = token;
  settings.token_source = "HF_TOKEN";
  const HubName name{.owner = "o", .name = "n", .revision = "v9"};
  return refusal(reply, name, "", settings).message;
}

TEST(Refusals, EachIsOneSentenceWithoutTheToken) {
  const auto with = [](long status, const char* code, const char* message = "") {
    return Reply{.status = status,
                 .headers = {{"x-error-code", code}, {"x-error-message", message}}};
  };
  EXPECT_THAT(
      refused(with(401, "GatedRepo")),
      HasSubstr("is gated: accept its terms at https://huggingface.co/o/n and set HF_TOKEN"));
  EXPECT_THAT(refused(with(403, "GatedRepo"), "hf_secret"),
              HasSubstr("the account of the token of HF_TOKEN may not load it"));
  EXPECT_THAT(refused(with(401, "RepoNotFound")), HasSubstr("if it is private, set HF_TOKEN"));
  EXPECT_THAT(refused(with(404, "RepoNotFound"), "hf_secret"),
              HasSubstr("no model or adapter of this name that the token of HF_TOKEN may read"));
  EXPECT_THAT(refused(with(401, "", "Invalid credentials in Authorization header"), "hf_secret"),
              HasSubstr("huggingface.co refuses the token of HF_TOKEN"));
  EXPECT_EQ(refused(with(404, "RevisionNotFound")), "o/n has no revision v9");
  EXPECT_THAT(refused(with(429, "")), HasSubstr("later (429)"));
  EXPECT_THAT(refused(with(500, "")), HasSubstr("status 500"));
  for (const long status : {401L, 403L, 404L, 429L, 451L, 500L})
    EXPECT_THAT(refused(with(status, ""), "hf_secret"), Not(HasSubstr("secret")));
}

}  // namespace
}  // namespace valora::hub
