#include "models/weights/weights.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <limits>

#include "base/testing/safetensors_text.h"
#include "base/testing/temp_dir.h"
#include "models/spec/load_error.h"
#include "models/weights/weight_files.h"

namespace valora::models {
namespace {

using valora::testing::f32_tensor;
using valora::testing::safetensors_text;
using valora::testing::TempDir;

class WeightsTest : public ::testing::Test {
 protected:
  std::string failure(Weights& weights, const std::string& name,
                      const std::vector<int64_t>& shape) {
    try {
      weights.get(name, shape);
      return "found";
    } catch (const LoadError& e) {
      return e.error().message;
    }
  }
  TempDir dir_;
};

TEST_F(WeightsTest, ChecksShapesResolvesAliasesAndListsUnused) {
  dir_.write("model.safetensors",
             safetensors_text({{"model.a.weight", f32_tensor({2, 3}, {1, 2, 3, 4, 5, 6})},
                               {"model.ids", {"I64", {1}, std::string(8, '\0')}},
                               {"spare", f32_tensor({1}, {7})}},
                              1));
  auto weights = Weights::open(dir_.path()).value();
  weights->set_aliases({{"model.", "model.language_model."}});
  EXPECT_EQ(weights->get("model.language_model.a.weight", {2, 3})[1][2].item<float>(), 6)
      << "not aligned in the file";
  EXPECT_NE(failure(*weights, "model.language_model.a.weight", {3, 2})
                .find("shape [2, 3], but the configuration requires [3, 2]"),
            std::string::npos);
  EXPECT_NE(failure(*weights, "model.language_model.b.weight", {3, 2})
                .find("no tensor model.language_model.b.weight"),
            std::string::npos);
  EXPECT_NE(failure(*weights, "model.ids", {1}).find("I64"), std::string::npos);
  EXPECT_EQ(weights->unused(), (std::vector<std::string>{"model.ids", "spare"}));
  weights->set_target(at::kBFloat16, at::kCPU);
  EXPECT_EQ(weights->get("spare", {1}).scalar_type(), at::kBFloat16);
}

TEST_F(WeightsTest, OnlySelectedPartsAreQuantised) {
  std::vector<float> values(3 * 40, 1);
  values[0] = -8;
  const auto fine = f32_tensor({3, 40}, values);
  values[119] = std::numeric_limits<float>::quiet_NaN();
  dir_.write("model.safetensors",
             safetensors_text({{"a.weight", fine}, {"bad.weight", f32_tensor({3, 40}, values)}}));
  auto weights = Weights::open(dir_.path()).value();
  EXPECT_FALSE(weights->linear("a", 3, 40, false, LinearPart::kDecoder).quantised());
  EXPECT_FALSE(weights->keeps_integers());
  weights->set_rounding({ops::Quantisation{4, 32}});
  const ops::Weight decoder = weights->linear("a", 3, 40, false, LinearPart::kDecoder);
  weights->set_plain(true);
  const ops::Weight plain = weights->linear("a", 3, 40, false, LinearPart::kDecoder);
  EXPECT_FALSE(plain.quantised());
  EXPECT_TRUE(at::equal(plain.data(), decoder.unpacked()));
  weights->set_plain(false);
  EXPECT_TRUE(decoder.encoding() == (ops::Encoding{4, 32}));
  EXPECT_EQ(decoder.dtype(), at::kFloat);
  EXPECT_EQ(decoder.unpacked()[0][0].item<float>(), -8);
  EXPECT_TRUE(weights->keeps_integers());
  const ops::Weight head = weights->linear("a", 3, 40, false, LinearPart::kHead);
  EXPECT_TRUE(head.encoding() == (ops::Encoding{8, 40}));
  EXPECT_EQ(weights->held().head, head.bytes());
  EXPECT_FALSE(weights->linear("a", 3, 40, false).quantised()) << "of a tower";
  try {
    weights->linear("bad", 3, 40, false, LinearPart::kDecoder);
    FAIL() << "a NaN as an integer";
  } catch (const LoadError& e) {
    EXPECT_NE(e.error().message.find("tensor bad.weight has values that are not finite"),
              std::string::npos)
        << e.error().message;
  }
}

TEST_F(WeightsTest, ShardsFormOneCheckpoint) {
  dir_.write("one.safetensors", safetensors_text({{"a", f32_tensor({1}, {1})}}));
  dir_.write("two.safetensors", safetensors_text({{"b", f32_tensor({1}, {2})}}));
  dir_.write("model.safetensors.index.json",
             R"({"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}})");
  auto weights = Weights::open(dir_.path()).value();
  EXPECT_EQ(weights->get("b", {1}).item<float>(), 2);
  EXPECT_EQ(weights->parameters(), 2);
  for (const char* index : {R"({"weight_map": {"a": "../one.safetensors"}})",
                            R"({"weight_map": {"a": "absent.safetensors"}})",
                            R"({"weight_map": {"a": ".."}})", R"({"weight_map": 3})", "[]"}) {
    dir_.write("model.safetensors.index.json", index);
    EXPECT_FALSE(Weights::open(dir_.path()).ok()) << index;
  }
}

// transformers reads the shards in order, keeps the last of two tensors with the same name, and
// ignores the index.
TEST_F(WeightsTest, DuplicateTensorsMustBeEqual) {
  const auto a = f32_tensor({1}, {1}), other = f32_tensor({1}, {2});
  dir_.write("model.safetensors.index.json",
             R"({"weight_map": {"a": "one.safetensors", "c": "two.safetensors"}})");
  dir_.write("one.safetensors", safetensors_text({{"a", a}, {"b", a}}));
  dir_.write("two.safetensors", safetensors_text({{"a", a}, {"c", a}, {"unlisted", other}}));
  EXPECT_EQ(Weights::open(dir_.path()).value()->get("unlisted", {1}).item<float>(), 2);
  dir_.write("two.safetensors", safetensors_text({{"a", other}, {"c", a}}));
  EXPECT_NE(Weights::open(dir_.path()).error().message.find("has a different value in"),
            std::string::npos);
}

TEST_F(WeightsTest, SingleFileTakesPrecedenceOverIndex) {
  dir_.write("model.safetensors", safetensors_text({{"a", f32_tensor({1}, {1})}}));
  dir_.write("model.safetensors.index.json",
             R"({"weight_map": {"a": "one.safetensors", "b": "one.safetensors"}})");
  EXPECT_FALSE(find_weight_files(dir_.path())->shards_ignored) << "its shards are gone";
  dir_.write("one.safetensors", safetensors_text({{"a", f32_tensor({1}, {2})}}));
  EXPECT_TRUE(find_weight_files(dir_.path())->shards_ignored);
  auto weights = Weights::open(dir_.path()).value();
  EXPECT_EQ(weights->get("a", {1}).item<float>(), 1);
  EXPECT_NE(failure(*weights, "b", {1}).find("no tensor b in model.safetensors, which is read"),
            std::string::npos);
  dir_.write("model.safetensors.index.json", "broken");
  EXPECT_FALSE(find_weight_files(dir_.path())->shards_ignored);
  EXPECT_TRUE(Weights::open(dir_.path()).ok());
}

TEST_F(WeightsTest, TensorsReadAfterUnmap) {
  const std::string content =
      safetensors_text({{"a", f32_tensor({2}, {1, 2})}, {"b", f32_tensor({2, 1}, {3, 4})}});
  dir_.write("model.safetensors", content);
  auto weights = Weights::open(dir_.path()).value();
  const at::Tensor kept = weights->get("a", {2});
  ASSERT_TRUE(weights->unmap().ok());
  EXPECT_TRUE(at::equal(kept, at::tensor({1.0f, 2.0f}))) << "not the map's memory";
  EXPECT_TRUE(at::equal(weights->view("b", {2, 1}), at::tensor({3.0f, 4.0f}).view({2, 1})));
  EXPECT_EQ(weights->parameters(), 4);
  EXPECT_EQ(weights->bytes(), 16u);
  EXPECT_EQ(weights->stored_dtype(), at::kFloat);
  dir_.write("model.safetensors", content + "x");
  EXPECT_THROW(weights->get("b", {2, 1}), LoadError);
  EXPECT_TRUE(at::equal(kept, at::tensor({1.0f, 2.0f})));
}

TEST_F(WeightsTest, ChangeOfMappedFileIsDetected) {
  const auto content = safetensors_text({{"a", f32_tensor({1}, {1})}});
  dir_.write("model.safetensors", content);
  auto weights = Weights::open(dir_.path()).value();
  std::filesystem::last_write_time(
      dir_.file("model.safetensors"),
      std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  const Status unmapped = weights->unmap();
  ASSERT_FALSE(unmapped.ok());
  EXPECT_NE(unmapped.error().message.find("was changed while it was in use"), std::string::npos);
}

TEST_F(WeightsTest, SketchesDistinguishCheckpoints) {
  const auto sketch = [&](const std::string& name, const std::vector<int64_t>& shape,
                          const std::vector<float>& values) {
    dir_.write("model.safetensors", safetensors_text({{name, f32_tensor(shape, values)}}));
    return Weights::open(dir_.path()).value()->sketch();
  };
  std::vector<float> values(6000, 1);
  const Digest first = sketch("a", {60, 100}, values);
  EXPECT_EQ(sketch("a", {60, 100}, values), first);
  EXPECT_NE(sketch("b", {60, 100}, values), first);
  EXPECT_NE(sketch("a", {100, 60}, values), first);
  for (float& value : values) value *= 1.001f;
  EXPECT_NE(sketch("a", {60, 100}, values), first);
  values.back() = 2;
  const Digest before = sketch("a", {60, 100}, values);
  values.back() = 3;
  EXPECT_NE(sketch("a", {60, 100}, values), before) << "both ends count";
  EXPECT_NE(sketch("a", {1}, {1}), sketch("a", {1}, {2})) << "smaller than a sample";
}

TEST_F(WeightsTest, PickledCheckpointsAreRefusedByName) {
  dir_.write("pytorch_model.bin", "");
  EXPECT_NE(Weights::open(dir_.path()).error().message.find("pickled"), std::string::npos);
  dir_.write("config.json", "{}");
  dir_.write("model-q4.gguf", "");
  EXPECT_NE(
      Weights::open(dir_.path())
          .error()
          .message.find("GGUF files such as model-q4.gguf are not read: give the file itself"),
      std::string::npos);
}

}  // namespace
}  // namespace valora::models
