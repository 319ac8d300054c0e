// How a request's application is chosen, and the settings that follow from it.
#include "server/handlers/applications/application_of.h"

#include "server/testing/applications_fixture.h"

namespace valora::server {
namespace {

using testing::WithApplications;

const std::string kInVideo = R"("metadata":{"application":"video"})";
const std::string kInRetrieval = R"("metadata":{"application":"retrieval"})";

class ApplicationOf : public WithApplications {
 protected:
  // Name of the application that the target selects; "" for none.
  std::string chosen(const std::string& fields, const std::string& header = {}) {
    const auto answer = header.empty() ? chat("x", fields) : chat_with(header, "x", fields);
    EXPECT_EQ(answer->response.status, 200) << answer->response.body;
    const auto target = engine_.requests().back().ttft_target;
    return !target ? "" : *target == 0.5 ? "retrieval" : *target == 0.3 ? "video" : "other";
  }
};

TEST_F(ApplicationOf, FirstOfFourSourcesDecides) {
  EXPECT_EQ(chosen(kInRetrieval, "video"), "video");
  EXPECT_EQ(chosen(R"("user":"retrieval","model":"lens")", "video"), "video");
  EXPECT_EQ(chosen(kInVideo + R"(,"user":"retrieval")"), "video");
  EXPECT_EQ(chosen(kInVideo + R"(,"model":"lens")"), "video");
  EXPECT_EQ(chosen(R"("user":"video","model":"lens")"), "video");
  EXPECT_EQ(chosen(R"("user":"somebody","model":"lens")"), "retrieval");
  EXPECT_EQ(chosen(R"("model":"birds","head":"")"), "video");
  EXPECT_EQ(chosen(R"("model":"fake:lens")"), "retrieval");
}

TEST_F(ApplicationOf, RequestWithoutApplicationIsUnchanged) {
  EXPECT_EQ(chosen(R"("user":"somebody","model":"fake")"), "");
  EXPECT_EQ(chosen(R"("user":7,"metadata":{"a":"b"})"), "");
  EXPECT_EQ(chosen(R"("metadata":"text")"), "");
  EXPECT_EQ(chosen(R"("metadata":{"application":null})"), "");
  EXPECT_EQ(engine_.requests().back().tpot_target, std::nullopt);
  EXPECT_EQ(engine_.requests().back().priority, 0);
  for (const char* outcome : {"ok", "error", "refused"}) {
    EXPECT_EQ(outcomes("retrieval", outcome), 0);
    EXPECT_EQ(outcomes("video", outcome), 0);
  }
}

TEST_F(ApplicationOf, AllNamesOfTheBaseAreOneModel) {
  options_.served_model_names = {"one", "two"};
  options_.applications[0].models = {"one"};
  EXPECT_EQ(chosen(""), "retrieval");
  EXPECT_EQ(chosen(R"("model":"one")"), "retrieval");
  EXPECT_EQ(chosen(R"("model":"two")"), "retrieval");
}

TEST_F(ApplicationOf, UnknownNameIs400) {
  const auto expect_refused = [](const testing::FakeExchange& exchange, const std::string& param,
                                 const std::string& message) {
    EXPECT_EQ(exchange.response.status, 400);
    const Json error = exchange.json()["error"];
    EXPECT_EQ(error["type"], "invalid_request_error");
    EXPECT_EQ(error["param"], param);
    EXPECT_EQ(error["message"], message);
  };
  const std::string message =
      "the application `nobody` does not exist; GET /v1/applications lists those that do";
  expect_refused(*chat_with("nobody"), "X-Valora-Application", message);
  expect_refused(*chat_with("nobody", "x", kInVideo), "X-Valora-Application", message);
  expect_refused(*chat("x", R"("metadata":{"application":"nobody"})"), "metadata.application",
                 message);
  expect_refused(*chat("x", R"("metadata":{"application":7})"), "metadata.application",
                 "\"metadata.application\" must be the name of an application");
  EXPECT_TRUE(engine_.requests().empty());
}

TEST_F(ApplicationOf, WithoutApplicationsOnlyTheHeaderIsRefused) {
  options_.applications.clear();
  EXPECT_EQ(chosen(kInVideo), "");
  EXPECT_EQ(chosen(R"("metadata":{"application":7},"user":"video")"), "");
  const auto refused = chat_with("video");
  EXPECT_EQ(refused->response.status, 400);
  EXPECT_EQ(refused->json()["error"]["message"],
            "the application `video` does not exist; this server has none (start it with "
            "--applications FILE)");
}

TEST_F(ApplicationOf, EveryPromptGetsTargetsAndPriority) {
  const Headers header = {{"X-Valora-Application", "retrieval"}};
  call("POST", "/v1/completions", R"({"prompt":["a","b"]})", header);
  call("POST", "/classify", R"({"model":"birds","input":["a","b"]})", header);
  call("POST", "/v1/chat/completions", chat_body("x", R"("stream":true)"), header);
  const auto requests = engine_.requests();
  ASSERT_EQ(requests.size(), 5u);
  for (const GenerateRequest& request : requests) {
    EXPECT_EQ(request.ttft_target, 0.5);
    EXPECT_EQ(request.tpot_target, 0.25);
    EXPECT_EQ(request.priority, 3);
    EXPECT_EQ(request.tenant, "retrieval");
    EXPECT_EQ(request.share, 2);
  }
  EXPECT_EQ(outcomes("retrieval", "ok"), 3);
}

TEST_F(ApplicationOf, RequestMayLowerItsPriority) {
  const auto priority = [&](const std::string& fields, const std::string& application) {
    EXPECT_EQ(chat_with(application, "x", fields)->response.status, 200);
    return engine_.requests().back().priority;
  };
  EXPECT_EQ(priority(R"("priority":7)", "retrieval"), 7);
  EXPECT_EQ(priority(R"("priority":3)", "retrieval"), 3);
  EXPECT_EQ(priority(R"("priority":null)", "retrieval"), 3);
  EXPECT_EQ(priority("", "retrieval"), 3);
  EXPECT_EQ(priority(R"("priority":1)", "video"), 1);
  EXPECT_EQ(chat("x", R"("priority":0)")->response.status, 200) << "of no application";
}

TEST_F(ApplicationOf, HigherPriorityIsRefused) {
  const auto refused = [&](const testing::FakeExchange& exchange, const std::string& message) {
    EXPECT_EQ(exchange.response.status, 403);
    const Json error = exchange.json()["error"];
    EXPECT_EQ(error["type"], "PermissionDeniedError");
    EXPECT_EQ(error["param"], "priority");
    EXPECT_EQ(error["message"], message);
  };
  const std::string rest =
      ", the highest that this request may have; send that or a larger number, or leave it out";
  refused(*chat_with("retrieval", "x", R"("priority":2)"), "\"priority\" 2 is above 3" + rest);
  refused(*chat("x", R"("priority":-1)"), "\"priority\" -1 is above 0" + rest);
  const std::string early = R"(,"priority":-1})";
  refused(*call("POST", "/v1/completions", R"({"prompt":"a")" + early),
          "\"priority\" -1 is above 0" + rest);
  refused(*call("POST", "/v1/responses", R"({"input":"a")" + early),
          "\"priority\" -1 is above 0" + rest);
  refused(*call("POST", "/v1/embeddings", R"({"input":"a")" + early),
          "\"priority\" -1 is above 0" + rest);
  refused(*call("POST", "/classify", R"({"model":"birds","input":"a")" + early),
          "\"priority\" -1 is above 0" + rest);
  EXPECT_TRUE(engine_.requests().empty());
}

TEST_F(ApplicationOf, AnyPriorityIsAllowedWithoutApplications) {
  options_.applications.clear();
  EXPECT_EQ(chat("x", R"("priority":-5)")->response.status, 200);
  EXPECT_EQ(engine_.requests().back().priority, -5);
}

TEST_F(ApplicationOf, OptionAllowsAnyPriority) {
  options_.allow_any_priority = true;
  EXPECT_EQ(chat_with("retrieval", "x", R"("priority":-7)")->response.status, 200);
  EXPECT_EQ(engine_.requests().back().priority, -7);
}

}  // namespace
}  // namespace valora::server
