// vllm:lora_requests_info lists the names that requests use.
#include "server/testing/handlers_fixture.h"

namespace valora::server {
namespace {

using testing::Handlers;
using ::testing::HasSubstr;

TEST_F(Handlers, LoraInfoListsRequestNamesAndLoadedNames) {
  engine_.load_adapter({.name = "street", .same_as = "lens"}, [](const auto&) {});
  const auto running = begin("POST", "/v1/chat/completions",
                             chat_body("!hang", R"("model":"street","stream":true)"));
  running->run_until_streaming();
  EXPECT_THAT(service_->metrics.text(),
              HasSubstr(R"(running_lora_adapters="lens,street",waiting_lora_adapters="")"));
  running->leave();
  engine_.wait_for_cancelled(1);
}

TEST_F(Handlers, LoraInfoListsWaitingAdaptersAndDropsFinishedOnes) {
  engine_.load_adapter({.name = "street", .same_as = "lens"}, [](const auto&) {});
  engine_.hold_requests(true);
  const auto waiting =
      begin("POST", "/v1/chat/completions", chat_body("x", R"("model":"fake:street")"));
  EXPECT_THAT(service_->metrics.text(), HasSubstr(R"(waiting_lora_adapters="street")"));
  engine_.hold_requests(false);
  waiting->run();
  EXPECT_EQ(waiting->response.status, 200);
  EXPECT_THAT(service_->metrics.text(),
              HasSubstr(R"(running_lora_adapters="",waiting_lora_adapters="")"));
  EXPECT_EQ(chat("x", R"("model":"nobody")")->response.status, 404);
  EXPECT_THAT(service_->metrics.text(), HasSubstr(R"(waiting_lora_adapters="")"));
}

}  // namespace
}  // namespace valora::server
