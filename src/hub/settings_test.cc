#include "hub/settings.h"

#include <gmock/gmock.h>

#include <map>

#include "base/testing/temp_dir.h"

namespace valora::hub {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using valora::testing::TempDir;

Result<HubSettings> settings_from(std::map<std::string, std::string> variables) {
  return settings_of([variables = std::move(variables)](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

std::string cache_from(std::map<std::string, std::string> variables) {
  return settings_from(std::move(variables)).value().cache;
}

TEST(HubSettings, CacheIsHuggingFaces) {
  EXPECT_EQ(cache_from({{"HOME", "/h"}}), "/h/.cache/huggingface/hub");
  EXPECT_EQ(cache_from({{"HOME", "/h"}, {"XDG_CACHE_HOME", "/x"}}), "/x/huggingface/hub");
  EXPECT_EQ(cache_from({{"HOME", "/h"}, {"HF_HOME", "~/f"}}), "/h/f/hub");
  EXPECT_EQ(cache_from({{"HF_HOME", "/f"}, {"HUGGINGFACE_HUB_CACHE", "/o"}}), "/o");
  EXPECT_EQ(cache_from({{"HUGGINGFACE_HUB_CACHE", "/o"}, {"HF_HUB_CACHE", "/c"}}), "/c");
  EXPECT_THAT(settings_from({{"MODELSCOPE_CACHE", "/m"}})->modelscope,
              ::testing::Contains("/m/hub/models"));
}

TEST(HubSettings, CertificatesAreThoseOfRequests) {
  EXPECT_EQ(settings_from({{"SSL_CERT_FILE", "/s"}})->certificates, "/s");
  EXPECT_EQ(settings_from({{"SSL_CERT_FILE", "/s"}, {"REQUESTS_CA_BUNDLE", "/r"}})->certificates,
            "/r");
  EXPECT_EQ(settings_from({})->certificates, "");
}

TEST(HubSettings, TokenIsOfTheEnvironmentOrItsFile) {
  const TempDir dir;
  dir.write("token", " hf_file \n");
  const std::string other = dir.write("other", "hf_other");
  EXPECT_EQ(settings_from({{"HF_HOME", dir.path()}})->token, "hf_file");
  EXPECT_EQ(settings_from({{"HF_HOME", dir.path()}, {"HF_TOKEN_PATH", other}})->token, "hf_other");
  const auto settings = settings_from({{"HF_HOME", dir.path()}, {"HF_TOKEN", "hf_own\n"}});
  EXPECT_EQ(settings->token, "hf_own");
  EXPECT_EQ(settings->token_source, "HF_TOKEN");
  EXPECT_EQ(settings_from({{"HF_HOME", "/none"}})->token, "");
}

TEST(HubSettings, TokenWithLineBreakIsRefusedWithoutBeingShown) {
  const auto settings = settings_from({{"HF_TOKEN", "hf_secret\r\nX-Other: 1"}});
  ASSERT_FALSE(settings.ok());
  EXPECT_THAT(settings.error().message, HasSubstr("the token of HF_TOKEN"));
  EXPECT_THAT(settings.error().message, Not(HasSubstr("secret")));
}

TEST(HubSettings, EndpointIsAUrl) {
  EXPECT_EQ(settings_from({})->endpoint, "https://huggingface.co");
  EXPECT_EQ(settings_from({{"HF_ENDPOINT", "http://127.0.0.1:8/"}})->endpoint,
            "http://127.0.0.1:8");
  for (const char* bad : {"huggingface.co", "file:///etc", "https://a b", "https://u:p@host",
                          "https://a?b", "https://a\nb"})
    EXPECT_FALSE(settings_from({{"HF_ENDPOINT", bad}}).ok()) << bad;
}

TEST(HubSettings, OfflineIsNamed) {
  EXPECT_EQ(settings_from({{"HF_HUB_OFFLINE", "1"}})->no_download, "HF_HUB_OFFLINE");
  EXPECT_EQ(settings_from({{"TRANSFORMERS_OFFLINE", "yes"}})->no_download, "TRANSFORMERS_OFFLINE");
  EXPECT_EQ(settings_from({{"HF_HUB_OFFLINE", "0"}})->no_download, "");
}

}  // namespace
}  // namespace valora::hub
