#include "serving/sampling/form_workers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "base/testing/temp_dir.h"
#include "grammar/testing/test_grammars.h"
#include "text/testing/tiny_tokenizer.h"

namespace valora::serving {
namespace {

using ::testing::HasSubstr;
using Started = Result<grammar::GrammarMatcher>;

// Compilations take as long as they like: what does not stop in these tests never ends.
constexpr FormLimits kNoLimits{.quick = 1e9, .compilation = 1e9};
constexpr FormLimits kAllSlow{.quick = 0, .compilation = 1e9};

AnswerConstraint form_of_schema(const std::string& schema, const std::string& param = "field") {
  return {AnswerConstraint::Kind::kJsonSchema, schema, {}, true, param};
}
AnswerConstraint endless_form() { return form_of_schema(grammar::endless_schema()); }

class FormWorkersTest : public ::testing::Test {
 protected:
  void start(const FormLimits& limits) {
    folder_.write("tokenizer.json", text::tiny_tokenizer_json().dump());
    auto tokenizer = text::Tokenizer::load(FolderPath(folder_.path()));
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
    grammars_ =
        std::make_shared<AnswerGrammars>(*tokenizer, std::vector<int32_t>{260}, 264, limits);
    workers_ = std::make_unique<FormWorkers>();
  }
  std::future<Started> prepare(uint64_t id, AnswerConstraint form, std::stop_token stop = {}) {
    auto result = std::make_shared<std::promise<Started>>();
    FormJob job{.id = id, .client = "client " + std::to_string(id), .grammars = grammars_};
    job.form = std::move(form);
    job.stop = std::move(stop);
    job.done = [result](Started started) { result->set_value(std::move(started)); };
    workers_->prepare(std::move(job));
    return result->get_future();
  }
  // Waits until this many compilations have begun: a slow form begins twice.
  void wait_for_begun(int64_t count) {
    for (int i = 0; i < 6000 && grammars_->stats().begun < count; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ASSERT_GE(grammars_->stats().begun, count);
  }
  static bool is_ready(const std::future<Started>& result) {
    return result.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }

  valora::testing::TempDir folder_;
  std::shared_ptr<AnswerGrammars> grammars_;
  std::unique_ptr<FormWorkers> workers_;
};

TEST_F(FormWorkersTest, RequestsOfAFormShareItsCompilation) {
  for (const FormLimits& limits : {kNoLimits, kAllSlow}) {
    start(limits);
    std::vector<std::future<Started>> results;
    for (uint64_t id = 0; id < 20; ++id)
      results.push_back(prepare(id, form_of_schema(R"({"type": "boolean"})")));
    for (auto& result : results) {
      Started started = result.get();
      ASSERT_TRUE(started.ok()) << started.error().message;
      EXPECT_TRUE(started->accept('t').ok()) << "each has a matcher of its own";
    }
    EXPECT_EQ(grammars_->stats().compiled, 1);
  }
}

TEST_F(FormWorkersTest, ErrorsNameTheFieldOfEachRequest) {
  start(kNoLimits);
  auto first = prepare(1, form_of_schema(R"({"not": {}})", "response_format"));
  auto second = prepare(2, form_of_schema(R"({"not": {}})", "guided_json"));
  EXPECT_EQ(first.get().error().param, "response_format");
  EXPECT_EQ(second.get().error().param, "guided_json");
}

TEST_F(FormWorkersTest, ACompilationStopsWhenItsLastRequestIsGone) {
  for (const FormLimits& limits : {kNoLimits, kAllSlow}) {
    start(limits);
    auto first = prepare(1, endless_form()), second = prepare(2, endless_form());
    wait_for_begun(limits.quick == 0 ? 2 : 1);
    workers_->stopped(1);
    ASSERT_TRUE(is_ready(first)) << "it does not wait for the compilation";
    EXPECT_EQ(first.get().error().code, ErrorCode::kCancelled);
    EXPECT_FALSE(is_ready(second));
    workers_->stopped(2);
    ASSERT_TRUE(is_ready(second));
    EXPECT_EQ(second.get().error().code, ErrorCode::kCancelled);
    workers_->stopped(2);  // nothing is left to stop
    // The threads are free again: otherwise none of these would be compiled.
    for (const uint64_t id : {1, 2})
      EXPECT_TRUE(prepare(id, form_of_schema(R"({"type": "string", "maxLength": 9})")).get().ok());
    EXPECT_EQ(grammars_->stats().stopped, 1);
  }
}

TEST_F(FormWorkersTest, ARequestThatLeftBeforeItCameIsNotPrepared) {
  start(kNoLimits);
  std::stop_source stop;
  stop.request_stop();
  auto result = prepare(1, endless_form(), stop.get_token());
  ASSERT_TRUE(is_ready(result));
  EXPECT_EQ(result.get().error().code, ErrorCode::kCancelled);
}

TEST_F(FormWorkersTest, AFormIsCompiledAnewAfterItsRequestsLeft) {
  start(kAllSlow);
  const AnswerConstraint form = form_of_schema(R"({"type": "integer"})");
  for (uint64_t id = 1; id < 50; ++id) {
    auto leaves = prepare(2 * id, form);
    workers_->stopped(2 * id);
    EXPECT_TRUE(prepare(2 * id + 1, form).get().ok());
    // Either may have come first: the form, or the end of its only request.
    const Started first = leaves.get();
    if (!first.ok()) {
      EXPECT_EQ(first.error().code, ErrorCode::kCancelled);
    }
  }
}

TEST_F(FormWorkersTest, ClosingWaitsForNoCompilation) {
  start(kAllSlow);
  const AnswerConstraint known = form_of_schema(R"({"type": "boolean"})");
  ASSERT_TRUE(prepare(1, known).get().ok());
  auto slow = prepare(2, endless_form()),
       behind = prepare(3, form_of_schema(grammar::endless_schema("another")));
  wait_for_begun(4);
  workers_->close();
  for (auto* result : {&slow, &behind}) {
    const Started refused = result->get();
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(refused.error().message, HasSubstr("shutting down"));
  }
  EXPECT_TRUE(prepare(4, known).get().ok()) << "it is in the cache";
  EXPECT_EQ(prepare(5, form_of_schema(R"({"type": "null"})")).get().error().code,
            ErrorCode::kUnavailable);
}

TEST_F(FormWorkersTest, DestructionWaitsForNoCompilation) {
  for (const FormLimits& limits : {kNoLimits, kAllSlow}) {
    start(limits);
    auto result = prepare(1, endless_form());
    wait_for_begun(limits.quick == 0 ? 2 : 1);
    workers_.reset();
    EXPECT_EQ(result.get().error().code, ErrorCode::kCancelled);
  }
}

}  // namespace
}  // namespace valora::serving
