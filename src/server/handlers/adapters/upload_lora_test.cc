// Uploaded adapters: which folders are kept, and that no others remain.
#include "server/handlers/handlers.h"

#include <filesystem>

#include "base/files/file.h"
#include "base/testing/temp_dir.h"
#include "server/testing/handlers_fixture.h"

namespace valora::server {
namespace {

using testing::FakeExchange;
using testing::Handlers;
using ::testing::HasSubstr;
using ::testing::Not;
using Fields = std::vector<std::pair<std::string, std::string>>;

class Uploads : public Handlers {
 protected:
  Uploads() { options_.adapter_upload_dir = dir_.path(); }

  static std::string form(const Fields& fields) {
    std::string body;
    for (const auto& [name, value] : fields)
      body += "--b\r\nContent-Disposition: form-data; name=\"" + name +
              "\"; filename=\"/etc/passwd\"\r\n\r\n" + value + "\r\n";
    return body + "--b--\r\n";
  }
  static Fields adapter(const std::string& name) {
    return {{"lora_name", name},
            {"adapter_config.json", "{}"},
            {"adapter_model.safetensors", std::string("\0\1\2", 3)}};
  }
  std::shared_ptr<FakeExchange> upload(const std::string& body, Headers headers = {}) {
    headers.emplace_back("Content-Type", "multipart/form-data; boundary=b");
    return call("POST", std::string(kUploadPath), body, std::move(headers));
  }
  std::shared_ptr<FakeExchange> upload(const Fields& fields) { return upload(form(fields)); }
  std::vector<std::string> kept() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(dir_.path()))
      names.push_back(entry.path().filename());
    return names;
  }
  std::string path_of(const std::string& name) {
    for (const AdapterCard& card : engine_.adapters())
      if (card.name == name) return card.path;
    return {};
  }

  const valora::testing::TempDir dir_;
};

TEST_F(Uploads, AdapterIsStoredUnderAGeneratedNameAndLoaded) {
  Fields fields = adapter("../../x");
  fields.emplace_back("pinned", "true");
  fields.emplace_back("valora.json", "{\"task\":1}");
  const auto answer = upload(fields);
  EXPECT_EQ(answer->response.body, "Success: LoRA adapter '../../x' added successfully.");
  EXPECT_TRUE(answer->body_released);
  ASSERT_EQ(kept().size(), 1u);
  EXPECT_THAT(kept().front(), ::testing::MatchesRegex("upload-[0-9a-f]{16}"));
  const std::string path = path_of("../../x");
  EXPECT_EQ(path, dir_.path() + "/" + kept().front());
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path)) files += entry.exists();
  EXPECT_EQ(files, 3u);
  EXPECT_EQ(read_file(path + "/adapter_model.safetensors", 10).value(), std::string("\0\1\2", 3));
  EXPECT_EQ(read_file(path + "/valora.json", 20).value(), "{\"task\":1}");
  EXPECT_TRUE(engine_.adapters().front().pinned);
}

TEST_F(Uploads, ListsShowFoldersOfUploadsByTheirNamesAlone) {
  upload(adapter("new"));
  const Json list = call("GET", "/v1/lora_adapters")->json()["data"];
  EXPECT_EQ(list.back()["name"], "new");
  EXPECT_EQ(list.back()["path"], kept().front());
  for (const char* path : {"/v1/models", "/v1/lora_adapters", "/v1/stats"})
    EXPECT_THAT(call("GET", path)->response.body, Not(HasSubstr(dir_.path()))) << path;
}

TEST_F(Uploads, RefusedUploadLeavesNoFiles) {
  const auto refused = [&](int status, const char* why, const Fields& fields) {
    const auto answer = upload(fields);
    EXPECT_EQ(answer->response.status, status) << answer->response.body;
    EXPECT_THAT(answer->response.body, HasSubstr(why));
    EXPECT_TRUE(kept().empty());
  };
  const auto with = [](const std::string& field, const std::string& value) {
    Fields fields = adapter("new");
    fields.emplace_back(field, value);
    return fields;
  };
  refused(400, "lacks the file adapter_config.json", {{"lora_name", "new"}});
  refused(400, "Both 'lora_name'", adapter(""));
  refused(400, "already been loaded", adapter("lens"));
  refused(400, "UTF-8", adapter("\xff"));
  refused(400, "unknown field \\\"../x.py\\\"", with("../x.py", "import os"));
  refused(400, "unknown field", with("adapter_config.json/../../x", "{}"));
  refused(400, "unknown field", with("lora_path", "/etc"));
  refused(400, "twice", with("adapter_config.json", "{}"));
  refused(400, "twice", with("lora_name", "other"));
  refused(400, "must be true or false", with("pinned", "yes"));
  refused(400, "whole number", with("expected_generation", "1x"));
  refused(409, "generation", with("expected_generation", "5"));
  refused(413, "larger than", with("valora.json", std::string((1 << 20) + 1, ' ')));
  EXPECT_EQ(upload(form(adapter("new")).substr(0, 150))->response.status, 400);  // cut off
  EXPECT_TRUE(kept().empty());
}

TEST_F(Uploads, FailedLoadRemovesItsFolderWithoutNamingIt) {
  engine_.set_max_adapters(2);
  const auto answer = upload(adapter("new"));
  EXPECT_EQ(answer->response.status, 400);
  EXPECT_THAT(answer->response.body, HasSubstr("2 adapters are loaded"));
  EXPECT_THAT(answer->response.body, Not(HasSubstr(dir_.path())));
  EXPECT_TRUE(kept().empty());
}

TEST_F(Uploads, TotalSizeIsLimitedAndUnusedUploadsAreRemoved) {
  options_.uploads.all = 12;  // one has five bytes
  EXPECT_EQ(upload(adapter("a"))->response.status, 200);
  EXPECT_EQ(upload(adapter("b"))->response.status, 200);
  const std::string first = path_of("a");
  const auto full = upload(adapter("c"));
  EXPECT_EQ(full->response.status, 507);
  EXPECT_THAT(full->response.body, HasSubstr("has 5 bytes, and uploaded adapters 10 of the 12"));
  call("POST", "/v1/unload_lora_adapter", R"({"lora_name":"a"})");
  EXPECT_EQ(upload(adapter("c"))->response.status, 507);  // requests may still be reading it
  clock_.advance(UploadStore::kRest);
  EXPECT_EQ(upload(adapter("c"))->response.status, 200);
  EXPECT_EQ(kept().size(), 2u);
  EXPECT_FALSE(std::filesystem::exists(first));
}

TEST_F(Uploads, WrongTypeOrOriginIsRefusedByTheHeader) {
  const std::string path(kUploadPath), body = form(adapter("new"));
  EXPECT_EQ(call("POST", path, body, {{"Content-Type", "application/json"}})->response.status, 415);
  EXPECT_EQ(call("POST", path, body)->response.status, 415);
  EXPECT_EQ(upload(body, {{"Host", "here:1"}, {"Origin", "http://elsewhere"}})->response.status,
            403);
  EXPECT_EQ(upload(body, {{"Host", "here:1"}, {"Origin", "http://here:1"}})->response.status, 200);
}

TEST_F(Uploads, UploadsAreDisabledWithoutAFolder) {
  options_.adapter_upload_dir.clear();
  const auto answer = upload(adapter("new"));
  EXPECT_EQ(answer->response.status, 403);
  EXPECT_THAT(answer->response.body, HasSubstr("--adapter-upload-dir"));
}

TEST(UploadFolder, IsCreatedAndClearedOfUnfinishedUploads) {
  const valora::testing::TempDir parent;
  const std::string dir = parent.file("uploads");
  const auto real = UploadStore::prepare(dir);
  ASSERT_TRUE(real.ok()) << real.error().message;
  EXPECT_EQ(*real, std::filesystem::canonical(dir));
  for (const char* name : {"upload-1.part", "upload-2", "other.part"})
    std::filesystem::create_directory(dir + "/" + name);
  ASSERT_TRUE(UploadStore::prepare(dir).ok());
  EXPECT_FALSE(std::filesystem::exists(dir + "/upload-1.part"));
  EXPECT_TRUE(std::filesystem::exists(dir + "/upload-2"));
  EXPECT_TRUE(std::filesystem::exists(dir + "/other.part"));
  EXPECT_FALSE(UploadStore::prepare(parent.file("a/b")).ok());
}

}  // namespace
}  // namespace valora::server
