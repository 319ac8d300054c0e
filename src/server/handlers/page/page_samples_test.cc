// The page's samples over HTTP: their list, their files, and who sees them.
#include "server/handlers/page/page_samples.h"

#include "base/json/json.h"
#include "server/testing/handlers_fixture.h"

namespace valora::server {
namespace {

using testing::Handlers;
using ::testing::HasSubstr;

class PageSamples : public Handlers {
 protected:
  PageSamples() {
    const auto bytes = std::make_shared<const std::string>("picture");
    options_.samples = {{"birds", "Which bird?", "owl.png", "image/png", bytes},
                        {"", "What is it?", "clip.mp4", "video/mp4", bytes}};
  }
};

TEST_F(PageSamples, AreListedAndSent) {
  const auto listed = call("GET", "/ui/samples");
  ASSERT_EQ(listed->response.status, 200);
  const Json data = Json::parse(listed->response.body)["data"];
  ASSERT_EQ(data.size(), 2u);
  EXPECT_EQ(data[0], Json::parse(R"({"model": "birds", "question": "Which bird?",
      "name": "owl.png", "type": "image/png", "bytes": 7, "path": "/ui/samples/0"})"));
  EXPECT_EQ(data[1]["model"], service_->base_name());
  const auto sent = call("GET", "/ui/samples/1");
  EXPECT_EQ(sent->response.status, 200);
  EXPECT_EQ(sent->response.body, "picture");
  EXPECT_EQ(sent->response.content_type, "video/mp4");
  for (const char* path : {"/ui/samples/", "/ui/samples/2", "/ui/samples/x", "/ui/samples/1x",
                           "/ui/samples/-1", "/ui/samples/99999999999999999999999"})
    EXPECT_EQ(call("GET", path)->response.status, 404) << path;
}

TEST_F(PageSamples, NeedAKeyAndShowWhatItsUserMayAsk) {
  User ann{.name = "ann", .key = "sk-ann-0001"};
  ann.models = {"birds"};
  options_.users = {ann};
  EXPECT_EQ(call("GET", "/ui/samples")->response.status, 401);
  EXPECT_EQ(call("GET", "/ui/samples/0")->response.status, 401);
  const Headers key = {{"Authorization", "Bearer sk-ann-0001"}};
  const auto listed = call("GET", "/ui/samples", "", key);
  EXPECT_EQ(Json::parse(listed->response.body)["data"].size(), 1u);
  EXPECT_EQ(call("GET", "/ui/samples/0", "", key)->response.status, 200);
  EXPECT_EQ(call("GET", "/ui/samples/1", "", key)->response.status, 404);
}

TEST_F(PageSamples, AreAbsentWithoutThePage) {
  options_.page = false;
  EXPECT_EQ(call("GET", "/ui/samples")->response.status, 404);
  EXPECT_EQ(call("GET", "/ui/samples/0")->response.status, 404);
}

}  // namespace
}  // namespace valora::server
