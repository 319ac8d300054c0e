// The built-in page: its files, their headers, and the option that turns it off.
#include "server/handlers/page/page.h"

#include "server/page/page_files.h"
#include "server/testing/handlers_fixture.h"

namespace valora::server {
namespace {

using testing::Handlers;
using ::testing::HasSubstr;
using ::testing::Not;

std::string page_header(const HttpResponse& response, std::string_view name) {
  for (const auto& [key, value] : response.headers)
    if (key == name) return value;
  return {};
}

TEST_F(Handlers, PageHasASameOriginContentPolicy) {
  const auto page = call("GET", "/");
  EXPECT_EQ(page->response.status, 200);
  EXPECT_EQ(page->response.content_type, "text/html; charset=utf-8");
  EXPECT_THAT(page->response.body, HasSubstr("ui/app.js"));
  const std::string policy = page_header(page->response, "Content-Security-Policy");
  EXPECT_THAT(policy, HasSubstr("default-src 'none'"));
  EXPECT_THAT(policy, HasSubstr("script-src 'self'"));
  EXPECT_THAT(policy, HasSubstr("frame-ancestors 'none'"));
  EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
  EXPECT_EQ(page_header(page->response, "X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(page_header(page->response, "Referrer-Policy"), "no-referrer");
  EXPECT_THAT(call("GET", "/docs")->response.body, HasSubstr("ui/docs.js"));
}

TEST_F(Handlers, PageFilesHaveTheirTypeAndAnETag) {
  size_t bytes = 0;
  for (const PageFile& file : page_files()) {
    SCOPED_TRACE(file.name);
    const std::string path = "/ui/" + std::string(file.name);
    const auto whole = call("GET", path);
    EXPECT_EQ(whole->response.status, 200);
    EXPECT_EQ(whole->response.body, file.text);
    EXPECT_EQ(whole->response.content_type == "text/javascript; charset=utf-8",
              file.name.ends_with(".js"));
    const std::string tag = page_header(whole->response, "ETag");
    EXPECT_EQ(tag.size(), 18u);
    const auto known = call("GET", path, "", {{"If-None-Match", tag}});
    EXPECT_EQ(known->response.status, 304);
    EXPECT_EQ(known->response.body, "");
    EXPECT_EQ(call("GET", path, "", {{"If-None-Match", "\"other\""}})->response.status, 200);
    bytes += file.text.size();
  }
  EXPECT_GT(bytes, 10'000u);
  EXPECT_LT(bytes, 300'000u);
  for (const char* path : {"/ui/", "/ui/none.js", "/ui/../server.h"})
    EXPECT_EQ(call("GET", path)->response.status, 404) << path;
}

TEST_F(Handlers, PageRequiresNoKey) {
  options_.api_keys = {"secret"};
  for (const char* path : {"/", "/docs", "/ui/app.js", "/ready"})
    EXPECT_EQ(call("GET", path)->response.status, 200) << path;
  EXPECT_EQ(call("GET", "/v1/stats")->response.status, 401);
}

TEST_F(Handlers, PagePathsAre404IfThePageIsDisabled) {
  options_.page = false;
  options_.root_path = "/models/a";
  for (const char* path : {"/", "/docs", "/ui/app.js", "/models/a"})
    EXPECT_EQ(call("GET", path)->response.status, 404) << path;
  EXPECT_EQ(call("GET", "/v1/stats")->response.status, 200);
}

TEST_F(Handlers, RootPathRedirectsToThePageWithASlash) {
  options_.root_path = "/models/a";
  const auto moved = call("GET", "/models/a");
  EXPECT_EQ(moved->response.status, 308);
  EXPECT_EQ(page_header(moved->response, "Location"), "/models/a/");
  EXPECT_EQ(call("GET", "/models/a/")->response.status, 200);
  EXPECT_EQ(call("GET", "/models/a/ui/app.js")->response.status, 200);
}

}  // namespace
}  // namespace valora::server
