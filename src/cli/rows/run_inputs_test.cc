#include "cli/rows/run_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/testing/temp_dir.h"
#include "cli/rows/row_bodies.h"

namespace valora::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class InputsTest : public ::testing::Test {
 protected:
  InputsTest() {
    std::filesystem::create_directories(dir_.file("p/deep/er"));
    std::filesystem::create_directories(dir_.file("p/.hidden"));
    for (const char* name : {"p/b.jpg", "p/a.png", "p/note.txt", "p/deep/c.jpg", "p/deep/er/d.JPG",
                             "p/.hidden/e.jpg", "p/.f.jpg", "p/deep/film.mp4"})
      (void)dir_.write(name, "x");
  }
  std::vector<std::string> below(std::vector<std::string> files) const {
    for (std::string& file : files) file = file.substr(dir_.path().size() + 1);
    return files;
  }
  std::vector<std::string> names(const std::vector<std::string>& inputs) {
    std::vector<std::string> all;
    for (const std::string& input : inputs) all.push_back(dir_.file(input));
    auto found = read_run_inputs(all);
    std::vector<std::string> out;
    if (!found.ok()) return {found.error().message};
    for (const MediaRow& row : found->media) out.push_back(row.name);
    return below(out);
  }

  testing::TempDir dir_;
};

TEST_F(InputsTest, PatternsMatchWithinAndAcrossFolders) {
  EXPECT_THAT(below(*matching_files(dir_.file("p/*.jpg"))), ElementsAre("p/b.jpg"));
  EXPECT_THAT(below(*matching_files(dir_.file("p/**/*.jpg"))),
              ElementsAre("p/b.jpg", "p/deep/c.jpg"));
  EXPECT_THAT(below(*matching_files(dir_.file("p/*/[cd].?pg"))), ElementsAre("p/deep/c.jpg"));
  EXPECT_THAT(below(*matching_files(dir_.file("p/**/er/**"))), ElementsAre("p/deep/er/d.JPG"));
  EXPECT_THAT(matching_files(dir_.file("p/*.gif")).error().message, HasSubstr("matches no file"));
}

TEST_F(InputsTest, FoldersAndPatternsGiveEachPictureAndVideoOnce) {
  EXPECT_THAT(names({"p", "p/*.jpg"}), ElementsAre("p/a.png", "p/b.jpg", "p/deep/c.jpg",
                                                   "p/deep/er/d.JPG", "p/deep/film.mp4"));
  EXPECT_EQ(read_run_inputs({dir_.file("p")})->left_out, 1u);
  EXPECT_THAT(names({"nothing.png"}), ElementsAre(HasSubstr("does not exist")));
}

TEST_F(InputsTest, TablesNameFilesFromTheirOwnFolder) {
  (void)dir_.write("t.csv",
                   "name,image,other,prompt\r\none,p/a.png,,\"What,\nis it?\"\n,p/b.jpg,,\n");
  const auto inputs = read_run_inputs({dir_.file("t.csv")});
  ASSERT_TRUE(inputs.ok()) << inputs.error().message;
  ASSERT_EQ(inputs->media.size(), 2u);
  EXPECT_EQ(inputs->media[0].name, "one");
  EXPECT_EQ(inputs->media[0].image, dir_.file("p/a.png"));
  EXPECT_EQ(inputs->media[0].prompt, "What,\nis it?");
  EXPECT_EQ(inputs->media[1].name, "p/b.jpg");
}

TEST_F(InputsTest, FaultsOfListsNameTheLine) {
  const auto fault = [&](const std::string& name, const std::string& text) {
    return read_run_inputs({dir_.write(name, text)}).error().message;
  };
  EXPECT_THAT(fault("t.csv", "a,b\n1,2\n"), HasSubstr("t.csv:1: the first line must name"));
  EXPECT_THAT(fault("t.csv", "image,prompt\n\"a\nb\",x\nc\n"), HasSubstr("t.csv:4: the row has 1"));
  EXPECT_THAT(fault("t.csv", "image\na\na\n"), HasSubstr("the name a twice"));
  EXPECT_THAT(fault("t.jsonl", "{\"custom_id\":\"a\"}\n"), HasSubstr("t.jsonl:1: the line lacks"));
  EXPECT_THAT(fault("t.jsonl", "\n"), HasSubstr("the input has no rows"));
}

TEST_F(InputsTest, DoneRowsAreLeftOut) {
  auto inputs = *read_run_inputs({dir_.file("p/*")});
  ASSERT_TRUE(drop_done(inputs, {dir_.file("p/a.png")}).ok());
  ASSERT_EQ(inputs.size(), 1u);
  EXPECT_EQ(inputs.total, 2u);
  EXPECT_EQ(inputs.media[0].name, dir_.file("p/b.jpg"));
}

TEST(RowBodies, RowsWithoutAModelAskThatOfTheCommand) {
  const std::string head = R"({"custom_id":"a","method":"POST","url":"/v1/completions","body":)";
  const RowQuestion question{.model = "coins"};
  EXPECT_EQ(openai_row(head + R"({"prompt":"x"}})", question)->request.body,
            R"({"model":"coins","prompt":"x"})");
  EXPECT_EQ(openai_row(head + "{}}", question)->request.body, R"({"model":"coins"})");
  EXPECT_EQ(openai_row(head + R"({"model":"b"}})", question)->request.body, R"({"model":"b"})");
}

TEST(RowBodies, PathsBecomeUrlsWhateverIsInThem) {
  EXPECT_EQ(file_url_of("/a b/50%#?ä.png"), "file:///a%20b/50%25%23%3F%C3%A4.png");
}

}  // namespace
}  // namespace valora::cli
