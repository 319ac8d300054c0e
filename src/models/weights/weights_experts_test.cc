// Experts that a checkpoint stores together: the linears made of them, whatever the order of axes.
#include <gtest/gtest.h>

#include "base/testing/safetensors_text.h"
#include "base/testing/temp_dir.h"
#include "models/spec/load_error.h"
#include "models/weights/weights.h"

namespace valora::models {
namespace {

using valora::testing::f32_tensor;
using valora::testing::safetensors_text;
using valora::testing::TempDir;

constexpr int64_t kExperts = 3, kHidden = 5, kWidth = 2;
constexpr char kPrefix[] = "model.layers.0.mlp.experts.";

at::Tensor values(std::vector<int64_t> shape, double first) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return at::arange(count, at::kFloat).add(first).view(shape);
}

auto stored(const at::Tensor& x) {
  const at::Tensor dense = x.contiguous();
  return f32_tensor(dense.sizes().vec(),
                    std::vector<float>(dense.const_data_ptr<float>(),
                                       dense.const_data_ptr<float>() + dense.numel()));
}

class StoredExperts : public ::testing::TestWithParam<bool> {
 protected:
  // Stored with its last two axes exchanged if the parameter is true.
  at::Tensor form(const at::Tensor& x) const { return GetParam() ? x.mT() : x; }
  std::unique_ptr<Weights> open() {
    dir_.write("model.safetensors",
               safetensors_text({{std::string(kPrefix) + "gate_up_proj", stored(form(both_))},
                                 {std::string(kPrefix) + "down_proj", stored(form(down_))}},
                                0));
    auto weights = Weights::open(dir_.path()).value();
    weights->set_aliases({{"model.", "model.language_model."}});
    weights->split_experts("model.language_model.layers.0.mlp.experts.",
                           {kExperts, kHidden, kWidth});
    return weights;
  }
  static std::string linear(int64_t expert, const char* part) {
    return "model.language_model.layers.0.mlp.experts." + std::to_string(expert) + "." + part;
  }
  TempDir dir_;
  const at::Tensor both_ = values({kExperts, 2 * kWidth, kHidden}, 0),
                   down_ = values({kExperts, kHidden, kWidth}, 100);
};
INSTANTIATE_TEST_SUITE_P(Orders, StoredExperts, ::testing::Bool());

TEST_P(StoredExperts, AreLinearsOfTheirOwn) {
  const auto weights = open();
  for (int64_t e = 0; e < kExperts; ++e) {
    const auto expect = [&](const char* part, const at::Tensor& expected) {
      ASSERT_TRUE(weights->has_linear(linear(e, part)));
      const ops::Weight w = weights->linear(linear(e, part), expected.size(0), expected.size(1),
                                            false, LinearPart::kDecoder);
      EXPECT_TRUE(at::equal(w.unpacked(), expected)) << part << e;
      const auto some = weights->stored_values(linear(e, part) + ".weight", 3, 4).value();
      EXPECT_TRUE(at::equal(some, expected.reshape({-1}).narrow(0, 3, 4)));
    };
    expect("gate_proj", both_[e].narrow(0, 0, kWidth));
    expect("up_proj", both_[e].narrow(0, kWidth, kWidth));
    expect("down_proj", down_[e]);
  }
  EXPECT_TRUE(weights->unused().empty());
  EXPECT_EQ(weights->parameters(), both_.numel() + down_.numel());
}

TEST_P(StoredExperts, AreReadAgainFromTheFile) {
  const auto weights = open();
  ops::Weight w = weights->linear(linear(1, "up_proj"), kWidth, kHidden, false);
  ASSERT_TRUE(weights->unmap().ok());
  w.refill(at::zeros({kWidth, kHidden}));
  weights->refill(linear(1, "up_proj"), w, LinearSlice::whole(kWidth, kHidden));
  EXPECT_TRUE(at::equal(w.unpacked(), both_[1].narrow(0, kWidth, kWidth)));
  const auto rows =
      weights->served_rows(linear(2, "down_proj"), kHidden, kWidth, LinearPart::kDecoder);
  EXPECT_TRUE(at::equal((*rows)(1, 3).value(), down_[2].narrow(0, 1, 3)));
}

TEST(StoredExpertsOfOneShape, AreRefused) {
  TempDir dir;
  const std::string name = std::string(kPrefix) + "down_proj";
  dir.write("model.safetensors", safetensors_text({{name, stored(values({2, 4, 4}, 0))}}, 0));
  const auto weights = Weights::open(dir.path()).value();
  try {
    weights->split_experts(kPrefix, {2, 4, 4});
    FAIL();
  } catch (const LoadError& e) {
    EXPECT_NE(e.error().message.find("the orientation of experts stored together"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace valora::models
