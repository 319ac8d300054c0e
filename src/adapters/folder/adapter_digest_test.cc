#include "adapters/folder/adapter_digest.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "adapters/testing/adapter_folder.h"

namespace valora::adapters {
namespace {

using testing::AdapterFolder;
using testing::filled;
using testing::kQ0;
using testing::kQ1;

std::string tensor_key(const std::string& module, const std::string& parameter) {
  return AdapterFolder::key(module, parameter);
}

TEST(AdapterDigest, DependsOnContentOnly) {
  AdapterFolder one, two;
  two.config["lora_dropout"] = 0.5;
  two.config["target_modules"] = R"(.*\.layers\..*q_proj)";
  two.sidecar = Json::object();
  EXPECT_EQ(one.read()->digest, two.read({}, 3)->digest);
}

TEST(AdapterDigest, RelevantChangesChangeDigest) {
  std::map<std::string, std::string> seen;
  const auto expect_new = [&](const std::string& what,
                              const std::function<void(AdapterFolder&)>& change) {
    AdapterFolder folder;
    folder.add_head("score", 2);
    folder.sidecar = {{"task", "t"}, {"heads", {{{"name", "score"}, {"labels", {"a", "b"}}}}}};
    change(folder);
    const auto spec = folder.read();
    ASSERT_TRUE(spec.ok()) << what << ": " << spec.error().message;
    const auto [it, is_new] = seen.emplace(spec->digest.hex(), what);
    EXPECT_TRUE(is_new) << what << " has the digest of " << it->second;
  };
  const auto flip = [](const std::string& tensor, size_t byte) {
    return [=](AdapterFolder& f) { f.tensors.at(tensor).bytes[byte] ^= 1; };
  };
  expect_new("the original", [](AdapterFolder&) {});
  expect_new("a bit of A", flip(tensor_key(kQ0, "lora_A.weight"), 0));
  expect_new("the last bit of B", flip(tensor_key(kQ1, "lora_B.weight"), 28));
  expect_new("a bit of the head", flip(tensor_key("score", "weight"), 4));
  expect_new("alpha", [](AdapterFolder& f) { f.config["lora_alpha"] = 4; });
  expect_new("alpha of one module", [](AdapterFolder& f) {
    f.config["alpha_pattern"] = {{"layers.1.self_attn.q_proj", 4}};
  });
  expect_new("rslora", [](AdapterFolder& f) { f.config["use_rslora"] = true; });
  expect_new("one module less", [](AdapterFolder& f) {
    f.config["layers_to_transform"] = 0;
    f.tensors.erase(tensor_key(kQ1, "lora_A.weight"));
    f.tensors.erase(tensor_key(kQ1, "lora_B.weight"));
  });
  expect_new("a bias",
             [](AdapterFolder& f) { f.tensors[tensor_key("score", "bias")] = filled({2}, 0); });
  expect_new("a label", [](AdapterFolder& f) { f.sidecar["heads"][0]["labels"][1] = "c"; });
  expect_new("the problem type",
             [](AdapterFolder& f) { f.sidecar["heads"][0]["problem_type"] = "regression"; });
  expect_new("the prompt",
             [](AdapterFolder& f) { f.sidecar["heads"][0]["add_generation_prompt"] = true; });
  expect_new("the task", [](AdapterFolder& f) { f.sidecar["task"] = "u"; });
  expect_new("the question", [](AdapterFolder& f) { f.sidecar["question"] = "u"; });
}

}  // namespace
}  // namespace valora::adapters
