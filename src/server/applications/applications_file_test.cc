#include "server/applications/application.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files/file.h"
#include "base/testing/temp_dir.h"

namespace valora::server {
namespace {

using ::testing::ElementsAre;

class ApplicationsFile : public ::testing::Test {
 protected:
  Result<std::vector<Application>> read(const std::string& text) {
    return read_applications(dir_.write("applications.yaml", text));
  }
  // The error message without the folder.
  std::string error(const std::string& text) {
    const auto read_text = read(text);
    if (read_text.ok()) return "no error";
    const std::string& message = read_text.error().message;
    EXPECT_TRUE(message.starts_with(dir_.path() + "/")) << message;
    return message.substr(dir_.path().size() + 1);
  }
  valora::testing::TempDir dir_;
};

TEST_F(ApplicationsFile, ReadsEveryField) {
  const auto applications = read(R"(
applications:
  - name: retrieval
    models: [cats, "2.5"]
    ttft: 0.5
    tpot: 0.1
    e2e: 10
    priority: -2
    share: 2.5
    max_waiting: 64
    rate: 0.25
  - name: Video_2.x-y
)");
  ASSERT_TRUE(applications.ok()) << applications.error().message;
  ASSERT_EQ(applications->size(), 2u);
  const Application& retrieval = (*applications)[0];
  EXPECT_EQ(retrieval.name, "retrieval");
  EXPECT_THAT(retrieval.models, ElementsAre("cats", "2.5"));
  EXPECT_EQ(retrieval.ttft, 0.5);
  EXPECT_EQ(retrieval.tpot, 0.1);
  EXPECT_EQ(retrieval.e2e, 10);
  EXPECT_EQ(retrieval.priority, -2);
  EXPECT_EQ(retrieval.share, 2.5);
  EXPECT_EQ(retrieval.max_waiting, 64);
  EXPECT_EQ(retrieval.rate, 0.25);
  const Application& video = (*applications)[1];
  EXPECT_EQ(video.name, "Video_2.x-y");
  EXPECT_TRUE(video.models.empty());
  EXPECT_FALSE(video.ttft || video.tpot || video.e2e || video.max_waiting || video.rate);
  EXPECT_EQ(video.priority, 0);
  EXPECT_EQ(video.share, 1);
}

TEST_F(ApplicationsFile, JsonIsReadLikeYaml) {
  const auto applications = read(R"({"applications": [{"name": "a", "rate": 5}]})");
  ASSERT_TRUE(applications.ok()) << applications.error().message;
  EXPECT_EQ((*applications)[0].rate, 5);
}

TEST_F(ApplicationsFile, FileErrorsNameLineAndKey) {
  const std::pair<const char*, const char*> faults[] = {
      {"", "applications.yaml:1: expected keys with values (applications), not nothing"},
      {"application:\n  - name: a\n",
       R"(applications.yaml:1: unknown key "application", did you mean "applications"?)"},
      {"{}", R"(applications.yaml:1: "applications" is missing)"},
      {"applications: []\n",
       R"(applications.yaml:1: "applications" must be a list of at least one application)"},
      {"applications: {name: a}\n",
       R"(applications.yaml:1: "applications" must be a list of at least one application)"},
      {"applications:\n- a\n",
       "applications.yaml:2: expected keys with values (name, models, ttft, tpot, e2e, priority, "
       "share, max_waiting, rate), not \"a\""},
      {"applications:\n- name: a\n  models: [m]\n- name: b\n  models:\n  - n\n  - m\n",
       R"(applications.yaml:7: "models" has "m", which belongs to the application "a"; name it in )"
       "one of them"},
      {"applications:\n- name: a\n- rate: 1\n  name: a\n",
       R"(applications.yaml:4: "name" is "a", like that of the application at line 2; give each )"
       "a different name"},
  };
  for (const auto& [text, message] : faults) EXPECT_EQ(error(text), message) << text;
}

TEST_F(ApplicationsFile, ApplicationErrorsNameLineAndKey) {
  const std::pair<const char*, const char*> faults[] = {
      {"  tttf: 1", R"(unknown key "tttf", did you mean "ttft"?)"},
      {"  models: cats", R"("models" must be a list of texts, not "cats")"},
      {"  models: []", R"("models" must not be empty)"},
      {"  models: [cats, cats]", R"("models" has "cats" twice)"},
      {"  models: [cats, []]", R"("models" must be a list of texts; one of them is a list)"},
      {"  ttft: fast", R"("ttft" must be a number from 0 to 86400, not "fast")"},
      {"  ttft: 0", R"("ttft" must be above 0; leave "ttft" out for none)"},
      {"  tpot: -0.1", R"("tpot" must be a number from 0 to 86400, not "-0.1")"},
      {"  tpot: nan", R"("tpot" must be a number from 0 to 86400, not "nan")"},
      {"  e2e: \"5\"", R"("e2e" must be a number from 0 to 86400, not "5")"},
      {"  e2e: 1e9", R"("e2e" must be a number from 0 to 86400, not "1e9")"},
      {"  e2e:", R"("e2e" must be a number from 0 to 86400, not nothing)"},
      {"  priority: 1.5",
       R"("priority" must be an integer from -2147483648 to 2147483647, not "1.5")"},
      {"  share: 0", R"("share" must be above 0; leave "share" out for 1)"},
      {"  share: 1e5", R"("share" must be a number from 0 to 1000, not "1e5")"},
      {"  max_waiting: 0", R"("max_waiting" must be an integer from 1 to 1000000, not "0")"},
      {"  rate: 0", R"("rate" must be above 0; leave "rate" out for none)"},
      {"  rate: 2000000", R"("rate" must be a number from 0 to 1000000, not "2000000")"},
      {"  name: b", R"(the key "name" appears twice)"},
  };
  for (const auto& [line, message] : faults)
    EXPECT_EQ(error("applications:\n- name: a\n" + std::string(line) + "\n"),
              std::string("applications.yaml:3: ") + message);
}

TEST_F(ApplicationsFile, NamesAreValidInLabelsAndHeaders) {
  const auto named = [this](const std::string& name) {
    return error("applications:\n- name: " + name + "\n");
  };
  for (const char* name : {"\"a b\"", "a/b", "a\u00e9", "\"a\\\"\"", "\"a\\n\""})
    EXPECT_THAT(named(name),
                ::testing::EndsWith(R"(; use up to 128 letters, digits, "-", "_" and ".")"))
        << name;
  EXPECT_EQ(named("a/b"),
            "applications.yaml:2: \"name\" is \"a/b\"; use up to 128 letters, "
            "digits, \"-\", \"_\" and \".\"");
  EXPECT_EQ(named("\"\""), "applications.yaml:2: \"name\" must not be empty");
  EXPECT_EQ(error("applications:\n- rate: 1\n"), "applications.yaml:2: \"name\" is missing");
  EXPECT_EQ(named(std::string(128, 'x')), "no error");
  EXPECT_NE(named(std::string(129, 'x')), "no error");
}

TEST_F(ApplicationsFile, MissingFileIsNamed) {
  const auto missing = read_applications(dir_.file("none.yaml"));
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(missing.error().message, ::testing::HasSubstr("none.yaml"));
}

TEST_F(ApplicationsFile, DocumentedExampleIsValid) {
  const auto page = read_file(VALORA_APPLICATIONS_PAGE, size_t{1} << 20);
  ASSERT_TRUE(page.ok()) << page.error().message;
  const std::string fence = "```yaml\n";
  const size_t begin = page->find(fence) + fence.size();
  const auto applications = read(page->substr(begin, page->find("```", begin) - begin));
  ASSERT_TRUE(applications.ok()) << applications.error().message;
  EXPECT_EQ((*applications)[0].name, "retrieval");
}

}  // namespace
}  // namespace valora::server
