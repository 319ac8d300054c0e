// Loading and unloading adapters at run time.
#include <filesystem>

#include "base/testing/temp_dir.h"
#include "server/handlers/adapters/adapter_resolver.h"
#include "server/testing/handlers_fixture.h"

namespace valora::server {
namespace {

using testing::Handlers;
using ::testing::HasSubstr;

TEST_F(Handlers, LoadAndUnloadAnswerLikeVllm) {
  const auto load = [&](const std::string& body) {
    return call("POST", "/v1/load_lora_adapter", body);
  };
  auto exchange = load(R"({"lora_name":"new","lora_path":"/p","base_model_name":"fake"})");
  EXPECT_EQ(exchange->response.status, 200);
  EXPECT_EQ(exchange->response.body, "Success: LoRA adapter 'new' added successfully.");
  EXPECT_EQ(call("GET", "/v1/models/new")->response.status, 200);

  exchange = load(R"({"lora_name":"new","lora_path":"/p"})");
  EXPECT_EQ(exchange->response.status, 400);
  EXPECT_EQ(exchange->json()["error"]["type"], "InvalidUserInput");
  EXPECT_EQ(load(R"({"lora_name":"new","lora_path":"/p","load_inplace":true})")->response.status,
            200);
  EXPECT_EQ(
      load(R"({"lora_name":"new","lora_path":"/p","expected_generation":1})")->response.status,
      409);
  EXPECT_EQ(load(R"({"lora_name":"","lora_path":"/p"})")->json()["error"]["type"],
            "InvalidUserInput");
  EXPECT_EQ(load(R"({"lora_name":"fake","lora_path":"/p"})")->json()["error"]["type"],
            "InvalidUserInput");
  EXPECT_EQ(load(R"({"lora_name":"x","lora_path":"/missing"})")->response.status, 404);
  EXPECT_EQ(load(R"({"lora_name":"x","lora_path":"/broken"})")->response.status, 422);
  EXPECT_EQ(load(R"({"lora_name":"x","lora_path":5})")->response.status, 400);

  exchange = call("POST", "/v1/unload_lora_adapter", R"({"lora_name":"new"})");
  EXPECT_EQ(exchange->response.body, "Success: LoRA adapter 'new' removed successfully.");
  EXPECT_EQ(call("POST", "/v1/unload_lora_adapter", R"({"lora_name":"new"})")->response.status,
            404);
  EXPECT_EQ(call("POST", "/v1/unload_lora_adapter", "{}")->response.status, 400);
}

TEST_F(Handlers, AdaptersArePinnedAndUnpinned) {
  engine_.add_adapter("huge");
  const auto change = [&](const char* what, const std::string& body) {
    return call("POST", std::string("/v1/") + what + "_lora_adapter", body);
  };
  const auto pinned = [&] {
    return call("GET", "/v1/stats")->json()["adapters"][2]["pinned"].get<bool>();
  };
  EXPECT_EQ(change("pin", R"({"lora_name":"lens"})")->response.body,
            "Success: LoRA adapter 'lens' pinned successfully.");
  EXPECT_TRUE(pinned());
  EXPECT_EQ(change("unpin", R"({"lora_name":"lens","expected_generation":1})")->response.body,
            "Success: LoRA adapter 'lens' unpinned successfully.");
  EXPECT_FALSE(pinned());
  EXPECT_EQ(change("pin", R"({"lora_name":"lens","expected_generation":7})")->response.status, 409);
  EXPECT_EQ(change("pin", R"({"lora_name":"nobody"})")->response.status, 404);
  EXPECT_EQ(change("pin", "{}")->response.status, 400);
  const auto full = change("pin", R"({"lora_name":"huge"})");
  EXPECT_EQ(full->response.status, 400);  // retrying does not help
  EXPECT_EQ(full->json()["error"]["param"], "pinned");
  EXPECT_THAT(full->response.body, HasSubstr("2048 bytes of 1024"));
}

TEST_F(Handlers, FullAdapterTableIsNotRetryable) {
  const valora::testing::TempDir directory;
  std::filesystem::create_directory(directory.file("ocr"));
  options_.lora_resolver_dir = directory.path();
  engine_.set_max_adapters(2);
  const auto load = [&](const std::string& path) {
    return call("POST", "/v1/load_lora_adapter",
                R"({"lora_name":"new","lora_path":")" + path + "\"}");
  };
  EXPECT_EQ(load(directory.file("nowhere"))->response.status, 404);
  const auto full = load(directory.path());
  EXPECT_EQ(full->response.status, 400);
  EXPECT_THAT(full->response.body, HasSubstr("2 adapters are loaded"));
  EXPECT_EQ(chat("x", R"("model":"ocr")")->response.status, 400);
}

TEST_F(Handlers, ExactAdapterNamePrecedesBasePrefix) {
  engine_.add_adapter("fake:lens");
  const Json answer = chat("!echo-adapters", R"("model":"fake:lens")")->json();
  EXPECT_EQ(answer["choices"][0]["message"]["content"], " fake:lens*1");
  EXPECT_EQ(call("GET", "/v1/models/fake:lens")->json()["id"], "fake:lens");
  EXPECT_EQ(call("GET", "/v1/models/fake:birds")->json()["id"], "birds");
}

TEST_F(Handlers, AdapterNamesStartingWithTheBaseNameAreRefused) {
  options_.served_model_names = {"one", "two"};
  for (const char* name : {"one:lens", "two:new", "one:one", "two"}) {
    const auto refused = call("POST", "/v1/load_lora_adapter",
                              R"({"lora_path":"/p","lora_name":")" + std::string(name) + "\"}");
    EXPECT_EQ(refused->response.status, 400) << name;
    EXPECT_EQ(refused->json()["error"]["type"], "InvalidUserInput");
    EXPECT_THAT(refused->response.body, HasSubstr("choose another adapter name"));
  }
  for (const char* name : {"one:", "onelens", "three:lens"})
    EXPECT_EQ(call("POST", "/v1/load_lora_adapter",
                   R"({"lora_path":"/p","lora_name":")" + std::string(name) + "\"}")
                  ->response.status,
              200)
        << name;
}

TEST_F(Handlers, AdapterListShowsGenerations) {
  const Json list = call("GET", "/v1/lora_adapters")->json();
  ASSERT_EQ(list["data"].size(), 2u);
  EXPECT_EQ(list["data"][0]["name"], "birds");
  EXPECT_EQ(list["data"][0]["generation"], 2);
  EXPECT_EQ(list["data"][0]["heads"], Json::parse(R"([{"name":"species","num_labels":3}])"));
}

TEST_F(Handlers, RuntimeLoadingRequiresItsOption) {
  options_.allow_runtime_lora_updating = false;
  const auto exchange =
      call("POST", "/v1/load_lora_adapter", R"({"lora_name":"a","lora_path":"/p"})");
  EXPECT_EQ(exchange->response.status, 403);
  EXPECT_THAT(exchange->response.body, HasSubstr("--allow-runtime-lora-updating"));
  EXPECT_EQ(call("POST", "/v1/pin_lora_adapter", R"({"lora_name":"lens"})")->response.status, 403);
}

TEST_F(Handlers, ResolverLoadsFoldersByName) {
  const valora::testing::TempDir directory;
  for (const char* name : {"ocr", "broken"})
    std::filesystem::create_directory(directory.file(name));
  options_.lora_resolver_dir = directory.path();
  EXPECT_EQ(chat("x", R"("model":"ocr")")->response.status, 200);
  EXPECT_EQ(chat("x", R"("model":"fake:ocr")")->response.status, 200);
  EXPECT_EQ(chat("x", R"("model":"other")")->response.status, 404);
  const auto broken = chat("x", R"("model":"broken")");
  EXPECT_EQ(broken->response.status, 400);
  EXPECT_THAT(broken->response.body, HasSubstr("can't be loaded: broken has a NaN"));
  EXPECT_THAT(broken->response.body, ::testing::Not(HasSubstr(directory.path())));
  EXPECT_EQ(broken->json()["error"]["param"], "model");
}

TEST_F(Handlers, ResolverIgnoresNamesStartingWithTheBaseName) {
  const valora::testing::TempDir directory;
  std::filesystem::create_directory(directory.file("fake:ocr"));
  options_.lora_resolver_dir = directory.path();
  EXPECT_EQ(chat("x", R"("lora":[{"name":"fake:ocr"}])")->response.status, 404);
}

TEST_F(Handlers, ConcurrentRequestsShareOneLoad) {
  const valora::testing::TempDir directory;
  std::filesystem::create_directory(directory.file("ocr"));
  options_.lora_resolver_dir = directory.path();
  engine_.hold_loads();
  const auto first = begin("POST", "/v1/chat/completions", chat_body("x", R"("model":"ocr")"));
  const auto second = begin("POST", "/v1/chat/completions", chat_body("y", R"("model":"ocr")"));
  EXPECT_EQ(engine_.release_loads(), 1u);
  first->run();
  second->run();
  EXPECT_EQ(first->response.status, 200);
  EXPECT_EQ(second->response.status, 200);
}

TEST_F(Handlers, LosingALoadRaceIsNotAnError) {
  const valora::testing::TempDir directory;
  std::filesystem::create_directory(directory.file("ocr"));
  options_.lora_resolver_dir = directory.path();
  engine_.hold_loads();
  const auto exchange = begin("POST", "/v1/chat/completions", chat_body("x", R"("model":"ocr")"));
  engine_.add_adapter("ocr");
  engine_.release_loads();
  exchange->run();
  EXPECT_EQ(exchange->response.status, 200);
}

TEST_F(Handlers, ResolverFollowsNoLinkOutOfItsFolder) {
  namespace fs = std::filesystem;
  const valora::testing::TempDir directory;
  for (const char* name : {"adapters", "adapters/blobs", "outside"})
    fs::create_directory(directory.file(name));
  fs::create_directory_symlink(directory.file("outside"), directory.file("adapters/out"));
  fs::create_directory_symlink("blobs", directory.file("adapters/in"));
  options_.lora_resolver_dir = directory.file("adapters");
  EXPECT_EQ(chat("x", R"("model":"out")")->response.status, 404);
  EXPECT_EQ(chat("x", R"("model":"in")")->response.status, 200);
}

TEST(SafeFolderName, NeverEscapesItsFolder) {
  for (const char* good : {"a", "my-adapter_1.2", "caf\xC3\xA9"})
    EXPECT_TRUE(safe_folder_name(good)) << good;
  for (const char* bad :
       {"", ".", "..", "../a", "a/b", "/etc", "a\\b", ".hidden", "a\nb", "a\xE2\x80\xAE", "a\xFF"})
    EXPECT_FALSE(safe_folder_name(bad)) << bad;
  EXPECT_FALSE(safe_folder_name(std::string("a\0b", 3)));
  EXPECT_FALSE(safe_folder_name(std::string(256, 'a')));
}

TEST_F(Handlers, AdaptersLoadFromAllowedFoldersOnly) {
  namespace fs = std::filesystem;
  const fs::path top = fs::path(::testing::TempDir()) / "allowed-lora-paths";
  fs::remove_all(top);
  fs::create_directories(top / "open" / "cats");
  fs::create_directories(top / "opener");
  fs::create_directory_symlink(top / "opener", top / "open" / "link");
  options_.allowed_lora_paths = {top / "nowhere", top / "open"};
  const auto status = [&](const std::string& path) {
    return call("POST", "/v1/load_lora_adapter",
                Json{{"lora_name", "new"}, {"lora_path", path}, {"load_inplace", true}}.dump())
        ->response.status;
  };
  EXPECT_EQ(status(top / "open" / "cats"), 200);
  EXPECT_EQ(status(top / "open" / "x" / ".." / "cats"), 200);
  for (const fs::path& path :
       {top / "opener", top / "open" / "link", top / "open" / ".." / "opener", fs::path("/etc"),
        fs::path("cats"), top / "missing"})
    EXPECT_EQ(status(path), 400) << path;
  EXPECT_EQ(status((top / "open" / "cats").string() + std::string(1, '\0')), 400);
  fs::remove_all(top);
}

TEST_F(Handlers, NulByteDoesNotTruncateAnAdapterPath) {
  const auto refused =
      call("POST", "/v1/load_lora_adapter", R"({"lora_name":"new","lora_path":"/p\u0000/q"})");
  EXPECT_EQ(refused->response.status, 400);
  EXPECT_THAT(refused->response.body, HasSubstr("zero byte"));
}

TEST_F(Handlers, FolderSwappedBeforeReadingCannotEscapeTheAllowedOne) {
  namespace fs = std::filesystem;
  const valora::testing::TempDir directory;
  fs::create_directories(directory.file("open/cats"));
  fs::create_directory(directory.file("outside"));
  options_.allowed_lora_paths = {directory.file("open")};
  engine_.hold_loads();
  const auto exchange =
      begin("POST", "/v1/load_lora_adapter",
            Json{{"lora_name", "new"}, {"lora_path", directory.file("open/cats")}}.dump());
  fs::remove(directory.file("open/cats"));
  fs::create_directory_symlink(directory.file("outside"), directory.file("open/cats"));
  EXPECT_EQ(engine_.release_loads(), 1u);
  exchange->run();
  EXPECT_EQ(exchange->response.status, 404);
}

}  // namespace
}  // namespace valora::server
