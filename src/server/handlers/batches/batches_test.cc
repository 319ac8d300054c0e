#include "server/handlers/handlers.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/files/file.h"
#include "base/testing/temp_dir.h"
#include "server/batches/batch_runner.h"
#include "server/handlers/batches/ask_row.h"
#include "server/testing/handlers_fixture.h"

namespace valora::server {
namespace {

using testing::Handlers;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class BatchesTest : public Handlers {
 protected:
  ~BatchesTest() override {
    if (runner_) runner_->stop();
  }
  void start() {
    service_ = std::make_shared<Service>(options_, engine_, clock_);
    store_ = std::move(*BatchStore::open(dir_.file("kept"), options_.batches));
    runner_ = std::make_unique<BatchRunner>(*store_, ask_through(service_),
                                            [](const std::string&) { return Headers(); });
    service_->batches = runner_.get();
    runner_->resume();
  }
  void end() {
    runner_->stop();
    runner_ = nullptr;
    store_ = nullptr;
  }

  std::string upload(const std::string& text) {
    const std::string body =
        "--b\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n"
        "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.jsonl\"\r\n\r\n" +
        text + "\r\n--b--";
    return call("POST", "/v1/files", body, {{"Content-Type", "multipart/form-data; boundary=b"}})
        ->json()
        .at("id");
  }
  Json create(const std::string& file) {
    const Json body = {{"input_file_id", file}, {"endpoint", "/v1/completions"}};
    return call("POST", "/v1/batches", body.dump())->json();
  }
  static std::string line(const std::string& id, const std::string& body) {
    return R"({"custom_id":")" + id + R"(","method":"POST","url":"/v1/completions","body":)" +
           body + "}\n";
  }
  Json wait_until_ended(const std::string& id) {
    for (int i = 0; i < 2000; ++i) {
      Json batch = call("GET", "/v1/batches/" + id)->json();
      for (const char* status : {"completed", "failed", "expired", "cancelled"})
        if (batch["status"] == status) return batch;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return {};
  }
  std::vector<std::string> names_in(const std::string& file) {
    std::vector<std::string> names;
    const auto opened = InputFile::open(store_->content_path(file));
    if (!opened.ok()) return names;
    (void)each_line(*opened, SIZE_MAX, [&](std::string_view row, LinePlace, size_t) -> Status {
      names.push_back(Json::parse(row)["custom_id"]);
      return {};
    }).ok();
    return names;
  }

  valora::testing::TempDir dir_;
  std::unique_ptr<BatchStore> store_;
  std::unique_ptr<BatchRunner> runner_;
};

TEST_F(BatchesTest, OffWithoutAFolderAndSaysSo) {
  for (const char* path : {"/v1/files", "/v1/batches", "/v1/files/x", "/v1/batches/x"}) {
    const auto answer = call("GET", path);
    EXPECT_EQ(answer->response.status, 403) << path;
    EXPECT_THAT(answer->response.body, HasSubstr("--batches-dir DIR"));
  }
  EXPECT_EQ(call("POST", "/v1/batches", "{}")->response.status, 403);
}

TEST_F(BatchesTest, RowsRunBehindLiveRequestsAndKeepTheirOwnOrder) {
  start();
  const std::string id = create(
      upload(line("a", R"({"prompt":"x","priority":3})") + line("b", R"({"prompt":"y"})")))["id"];
  EXPECT_EQ(wait_until_ended(id)["status"], "completed");
  (void)chat("live");
  std::vector<int> priorities;
  for (const GenerateRequest& request : engine_.requests()) priorities.push_back(request.priority);
  EXPECT_THAT(priorities, UnorderedElementsAre((1 << 30) + 3, 1 << 30, 0));
}

TEST_F(BatchesTest, EveryRowEndsInOneOfTheFiles) {
  start();
  std::string text;
  for (int i = 0; i < 200; ++i)
    text += line(std::to_string(i),
                 i % 10 == 0 ? R"({"prompt":"x","model":"nobody"})" : R"({"prompt":"x"})");
  const Json batch = wait_until_ended(create(upload(text))["id"]);
  EXPECT_EQ(batch["request_counts"], Json({{"total", 200}, {"completed", 180}, {"failed", 20}}));
  std::vector<std::string> names = names_in(batch["output_file_id"]);
  EXPECT_EQ(names.size(), 180u);
  for (std::string& name : names_in(batch["error_file_id"])) names.push_back(std::move(name));
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::unique(names).size(), 0u);
  EXPECT_EQ(names.size(), 200u);
}

// What a kill leaves behind: a record in progress, and answers of which the last is torn.
TEST_F(BatchesTest, AnotherProcessGoesOnBehindATornRow) {
  start();
  const std::string file = upload(line("a", R"({"prompt":"x"})") + line("b", R"({"prompt":"y"})"));
  BatchRecord record{.endpoint = "/v1/completions", .input_file_id = file};
  record.status = BatchStatus::kInProgress;
  record.expires_at = std::time(nullptr) + 1000;
  const BatchRecord batch = *store_->add_batch(record);
  end();
  const std::string kept = R"({"custom_id":"a","response":{"status_code":200}})"
                           "\n";
  (void)dir_.write("kept/files/" + batch.output_id, kept + R"({"custom_id":"b","resp)");
  start();
  const Json ended = wait_until_ended(batch.id);
  EXPECT_EQ(ended["status"], "completed");
  EXPECT_EQ(ended["request_counts"], Json({{"total", 2}, {"completed", 2}, {"failed", 0}}));
  EXPECT_EQ(engine_.requests().size(), 1u);
  EXPECT_THAT(read_file(store_->content_path(batch.output_id), 1 << 20)->substr(0, kept.size()),
              kept);
  EXPECT_THAT(names_in(batch.output_id), UnorderedElementsAre("a", "b"));
}

TEST_F(BatchesTest, ARestartBetweenFinalizingAndTheEndPublishesOnce) {
  start();
  const std::string id = create(upload(line("a", R"({"prompt":"x"})")))["id"];
  const Json first = wait_until_ended(id);
  ASSERT_TRUE(store_
                  ->change(id,
                           [](BatchRecord& batch) {
                             batch.status = BatchStatus::kFinalizing;
                             batch.has_output = false;
                             batch.times.erase("completed_at");
                           })
                  .ok());
  end();
  start();
  const Json second = wait_until_ended(id);
  EXPECT_EQ(second["status"], "completed");
  EXPECT_EQ(second["output_file_id"], first["output_file_id"]);
  EXPECT_EQ(engine_.requests().size(), 1u);
}

TEST_F(BatchesTest, WhatUploadsLeftWithoutARecordIsRemoved) {
  start();
  const std::string file = upload("x");
  end();
  (void)dir_.write("kept/files/file-orphan", "x");
  (void)dir_.write("kept/files/" + file + ".json.part", "{");
  start();
  EXPECT_FALSE(file_exists(dir_.file("kept/files/file-orphan")));
  EXPECT_FALSE(file_exists(dir_.file("kept/files/" + file + ".json.part")));
  EXPECT_EQ(call("GET", "/v1/files/" + file + "/content")->response.body, "x");
}

TEST_F(BatchesTest, ABrokenRecordEndsTheStartAndIsNamed) {
  start();
  const std::string file = upload("x");
  end();
  (void)dir_.write("kept/files/" + file + ".json", "{");
  const auto opened = BatchStore::open(dir_.file("kept"), {});
  EXPECT_THAT(opened.error().message, HasSubstr(file + ".json"));
}

TEST(Windows, AreANumberAndAUnit) {
  EXPECT_EQ(*window_seconds("24h"), 86400);
  EXPECT_EQ(*window_seconds("90s"), 90);
  EXPECT_EQ(*window_seconds("30d"), 30 * 86400);
  for (const char* wrong : {"", "h", "24", "-1h", "0h", "31d", "24 h", "24hh", "9999999999999999d"})
    EXPECT_FALSE(window_seconds(wrong).ok()) << wrong;
}

TEST(QueryValues, AreDecoded) {
  EXPECT_EQ(query_value("a=1&b=x%20y&b=z", "b"), "x y");
  EXPECT_EQ(query_value("a", "a"), "");
  EXPECT_EQ(query_value("ab=1", "a"), std::nullopt);
  EXPECT_EQ(query_value("a=%zz", "a"), std::nullopt);
}

}  // namespace
}  // namespace valora::server
