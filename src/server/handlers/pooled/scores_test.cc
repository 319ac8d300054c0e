#include "base/json/json.h"
#include "server/testing/handlers_fixture.h"

namespace valora::server {
namespace {

using testing::Handlers;

// The fake engine takes longer prompts for likelier.
TEST_F(Handlers, RerankOrdersDocuments) {
  const Json answer =
      call(
          "POST", "/v1/rerank",
          R"({"model":"lens","query":"q","documents":["a",{"text":"abc"},"ab",{"image":"data:x"}]})")
          ->json();
  EXPECT_EQ(answer["model"], "lens");
  ASSERT_EQ(answer["results"].size(), 4u);
  EXPECT_EQ(answer["results"][0]["index"], 1);
  EXPECT_EQ(answer["results"][0]["document"]["text"], "abc");
  EXPECT_EQ(answer["results"][1]["index"], 2);
  EXPECT_EQ(answer["results"][2]["index"], 0);
  EXPECT_FALSE(answer["results"][3].contains("document"));
  EXPECT_GT(answer["results"][0]["relevance_score"], answer["results"][1]["relevance_score"]);
  EXPECT_GT(answer["usage"]["total_tokens"], answer["usage"]["prompt_tokens"]);
  const GenerateRequest asked = engine_.requests().back();
  EXPECT_EQ(asked.adapters.at(0).name, "lens");
  EXPECT_EQ(asked.sampling.max_tokens, 1);
  EXPECT_EQ(asked.sampling.logprob_token_ids, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(asked.head, "");
}

TEST_F(Handlers, RerankGivesTheBestAlone) {
  const Json answer =
      call("POST", "/v2/rerank",
           R"({"query":"q","documents":["a","abc","ab"],"top_n":2,"return_documents":false})")
          ->json();
  ASSERT_EQ(answer["results"].size(), 2u);
  EXPECT_EQ(answer["results"][1]["index"], 2);
  EXPECT_FALSE(answer["results"][0].contains("document"));
}

TEST_F(Handlers, ScoresAreProbabilitiesOrLogOdds) {
  const auto score = [&](const char* more) {
    const auto answer =
        call("POST", "/score", std::string(R"({"text_1":"q","text_2":["a"])") + more + "}");
    EXPECT_EQ(answer->response.status, 200) << answer->response.body;
    EXPECT_EQ(answer->json()["data"][0]["object"], "score");
    return answer->json()["data"][0]["score"].get<double>();
  };
  const double odds = score(R"(,"use_activation":false)");
  EXPECT_GT(odds, 0);
  EXPECT_NEAR(score(""), 1 / (1 + std::exp(-odds)), 1e-9);
}

TEST_F(Handlers, PairsAreOneToManyOrOneToOne) {
  const auto count = [&](const char* body) {
    const auto answer = call("POST", "/v1/score", body);
    return answer->response.status == 200 ? static_cast<int>(answer->json()["data"].size()) : -1;
  };
  EXPECT_EQ(count(R"({"data_1":"q","data_2":["a","b","c"]})"), 3);
  EXPECT_EQ(count(R"({"queries":["q","r"],"documents":["a","b"]})"), 2);
  EXPECT_EQ(count(R"({"text_1":["q","r"],"text_2":["a","b","c"]})"), -1);
}

TEST_F(Handlers, PairsNameWrongFields) {
  for (const auto& [path, body, param] :
       {std::tuple{"/rerank", R"({"documents":["a"]})", "query"},
        std::tuple{"/rerank", R"({"query":"q"})", "documents"},
        std::tuple{"/rerank", R"({"query":"q","documents":"a"})", "documents"},
        std::tuple{"/rerank", R"({"query":["q"],"documents":["a"]})", "query"},
        std::tuple{"/rerank", R"({"query":"q","documents":[]})", "documents"},
        std::tuple{"/rerank", R"({"query":"q","documents":["a",5]})", "documents[1]"},
        std::tuple{"/rerank", R"({"query":"q","documents":["a"],"top_n":-1})", "top_n"},
        std::tuple{"/rerank", R"({"query":"q","documents":["a"],"rank_fields":["x"]})",
                   "rank_fields"},
        std::tuple{"/score", R"({"text_2":"a"})", "text_1"},
        std::tuple{"/score", R"({"text_1":"a"})", "text_2"}}) {
    const auto refused = call("POST", path, body);
    EXPECT_EQ(refused->response.status, 400) << body;
    EXPECT_EQ(refused->json()["error"]["param"], param) << body;
  }
}

}  // namespace
}  // namespace valora::server
