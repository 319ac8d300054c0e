#include "hub/names/hub_name.h"

#include <gtest/gtest.h>

namespace valora::hub {
namespace {

TEST(HubName, PartsAreRead) {
  const auto plain = parse_hub_name("Qwen/Qwen2.5-VL-3B-Instruct");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->owner, "Qwen");
  EXPECT_EQ(plain->name, "Qwen2.5-VL-3B-Instruct");
  EXPECT_EQ(plain->revision_or_main(), "main");
  const auto revised = parse_hub_name("a/b@refs/pr/1");
  ASSERT_TRUE(revised);
  EXPECT_EQ(revised->revision, "refs/pr/1");
  const auto file = parse_hub_name("a/b-GGUF/b-Q4_K_M.gguf@v1.0");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->file, "b-Q4_K_M.gguf");
  EXPECT_EQ(file->text(), "a/b-GGUF/b-Q4_K_M.gguf@v1.0");
}

TEST(HubName, PathsAndUnsafeTextAreNoNames) {
  for (const char* text :
       {"",       "model",   "/a/b",        "./a/b",      "../b",          "a/..",
        "a/../b", "a/b/c",   "a/b/",        "a//b",       "~/b",           "a/.b",
        ".a/b",   "a--b/c",  "a/b..c",      "a/b.git",    "a b/c",         "a/b\n",
        "a/b\\c", "a/b@",    "a/b@../../x", "a/b@/x",     "a/b@x/",        "a/b@x//y",
        "a/b@.x", "a/b@x y", "-a/b",        "a/b-",       "a/b/../x.gguf", "http://a/b",
        "a/b?c",  "a/b#c",   "a/b%2e",      "a\xc3\xa4/b"})
    EXPECT_FALSE(parse_hub_name(text)) << text;
  EXPECT_FALSE(parse_hub_name("a/" + std::string(100, 'b')));
  EXPECT_FALSE(parse_hub_name("a/b@" + std::string(256, 'b')));
}

TEST(HubName, FileNamesHaveNoFolders) {
  for (const char* name : {"config.json", "a b.txt", "model-00001-of-00002.safetensors"})
    EXPECT_TRUE(is_file_name(name)) << name;
  for (const char* name : {"", ".", "..", "a/b", "a\\b", "a\nb", "/a", "\xff"})
    EXPECT_FALSE(is_file_name(name)) << name;
}

TEST(HubName, DigestsAreLowerCaseHexadecimal) {
  EXPECT_TRUE(is_commit(std::string(40, 'a')));
  EXPECT_FALSE(is_commit(std::string(40, 'A')));
  EXPECT_FALSE(is_commit(std::string(64, 'a')));
  EXPECT_TRUE(is_digest(std::string(64, '0')));
  EXPECT_FALSE(is_digest(std::string(39, '0') + "/"));
}

TEST(HubName, ModuleFilesLieInFoldersThatServingReads) {
  for (const char* name : {"1_Pooling/config.json", "2_Normalize/config.json",
                           "additional_chat_templates/reranker.jinja"})
    EXPECT_TRUE(is_module_file(name)) << name;
  for (const char* name :
       {"config.json", "onnx/model.onnx", "1_Pooling/model.safetensors", "../config.json",
        "1_Pooling/../config.json", "1_Pooling/", "/config.json", "1_A/b/config.json", ""})
    EXPECT_FALSE(is_module_file(name)) << name;
}

}  // namespace
}  // namespace valora::hub
