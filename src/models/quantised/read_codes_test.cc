#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/testing/temp_dir.h"
#include "models/quantised/config.h"
#include "models/spec/load_error.h"
#include "models/testing/quantised_tensors.h"
#include "models/weights/weights.h"

namespace valora::models {
namespace {

using ::testing::HasSubstr;
using testing::raw;
using valora::testing::RawTensor;

constexpr char kLinear[] = "model.layers.0.mlp.up_proj";
constexpr int64_t kOut = 6, kIn = 10, kBlock = 4, kBlocks = 15;  // blocks span outputs

// A bitsandbytes linear: 4-bit codes of the flattened weight.
class CodesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(3);
    codes_ = at::randint(0, 16, {kOut * kIn}, generator, at::kByte);
    table_ = at::randn({16}, generator);
    scales_ = at::rand({kBlocks}, generator) + 0.5;
    state_ = {{"quant_type", "nf4"},
              {"blocksize", kBlock},
              {"dtype", "bfloat16"},
              {"shape", {kOut, kIn}}};
    const at::Tensor pairs = codes_.view({-1, 2});
    set("", raw((pairs.select(1, 0) * 16 + pairs.select(1, 1)).view({-1, 1})));
    set(".quant_map", raw(table_));
    set(".absmax", raw(scales_));
  }
  void set(const std::string& part, RawTensor tensor) {
    tensors_[std::string(kLinear) + ".weight" + part] = std::move(tensor);
  }
  void nest() {
    at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(4);
    const at::Tensor codes = at::randint(0, 256, {kBlocks}, generator, at::kByte),
                     table = at::randn({256}, generator), outer = at::rand({2}, generator);
    set(".absmax", raw(codes));
    set(".nested_absmax", raw(outer));
    set(".nested_quant_map", raw(table));
    state_["nested_blocksize"] = 9;
    state_["nested_offset"] = 0.625;
    scales_ = table.index_select(0, codes.to(at::kLong)) *
                  outer.repeat_interleave(9).slice(0, 0, kBlocks) +
              0.625;
  }
  std::unique_ptr<Weights> open() {
    const std::string text = state_.dump();
    set(".quant_state.bitsandbytes__nf4", {"U8", {static_cast<int64_t>(text.size())}, text});
    dir_.write("model.safetensors", valora::testing::safetensors_text(tensors_));
    auto weights = Weights::open(dir_.path()).value();
    const Json section = {
        {"quant_method", "bitsandbytes"}, {"load_in_4bit", true}, {"bnb_4bit_quant_type", "nf4"}};
    auto config =
        read_quantised_config(ConfigReader({{"quantization_config", section}}, "config.json"));
    weights->set_quantisation(std::make_shared<const QuantisedConfig>(std::move(*config)));
    return weights;
  }
  at::Tensor expected() const {
    const at::Tensor scales = scales_.repeat_interleave(kBlock).slice(0, 0, kOut * kIn);
    return (table_.index_select(0, codes_.to(at::kLong)) * scales).view({kOut, kIn});
  }
  std::string refusal() {
    try {
      open()->linear(kLinear, kOut, kIn, false);
      return "accepted";
    } catch (const LoadError& e) {
      return e.error().message;
    }
  }

  valora::testing::TempDir dir_;
  std::map<std::string, RawTensor> tensors_;
  Json state_;
  at::Tensor codes_, table_, scales_;
};

TEST_F(CodesTest, DecodeToTableEntryTimesBlockScale) {
  for (const bool nested : {false, true}) {
    if (nested) nest();
    auto weights = open();
    EXPECT_EQ(weights->parameters(), kOut * kIn);
    EXPECT_TRUE(at::equal(weights->linear(kLinear, kOut, kIn, false).unpacked(), expected()));
    EXPECT_THAT(weights->unused(), ::testing::IsEmpty());
    EXPECT_EQ(weights->quantised()->text("float32"),
              "1 linear of codes of 4 bits (bitsandbytes nf4), decoded to float32");
    ASSERT_TRUE(weights->unmap().ok());
    ops::Weight again(at::zeros({kOut, kIn}), at::kFloat, at::kCPU);
    weights->refill(kLinear, again, LinearSlice::whole(again.out(), again.in()));
    EXPECT_TRUE(at::equal(again.unpacked(), expected())) << "from the files";
    weights = open();
    weights->set_target(at::kBFloat16, at::kMeta);
    EXPECT_EQ(weights->linear(kLinear, kOut, kIn, false).out(), kOut);
  }
}

TEST_F(CodesTest, WiderStorageDtypeDecodesEqually) {
  RawTensor& stored = tensors_[std::string(kLinear) + ".weight"];
  stored.dtype = "BF16";
  stored.shape = {15, 1};
  EXPECT_TRUE(at::equal(open()->linear(kLinear, kOut, kIn, false).unpacked(), expected()));
  stored = {"F32", {8, 1}, stored.bytes + std::string(2, '\0')};
  EXPECT_THAT(refusal(), HasSubstr("cannot hold 60 codes"));
}

TEST_F(CodesTest, BrokenTensorsAreRefusedByName) {
  nest();
  const auto tensors = tensors_;
  const Json state = state_;
  const auto refused = [&](const std::string& part, std::optional<at::Tensor> value,
                           const std::string& why) {
    tensors_ = tensors;
    tensors_.erase(std::string(kLinear) + ".weight" + part);
    if (value) set(part, raw(*value));
    EXPECT_THAT(refusal(), ::testing::AllOf(HasSubstr(std::string(kLinear) + ".weight" + part),
                                            HasSubstr(why)));
  };
  refused("", at::zeros({29, 1}, at::kByte), "requires [30, 1]");
  refused(".quant_map", {}, "is missing");
  refused(".quant_map", at::zeros({15}), "has shape [15]");
  refused(".quant_map", at::full({16}, std::numeric_limits<float>::quiet_NaN()), "not finite");
  refused(".absmax", at::zeros({14}, at::kByte), "has shape [14]");
  refused(".absmax", at::zeros({kBlocks}), "has dtype F32");
  refused(".nested_quant_map", {}, "is missing");
  refused(".nested_absmax", at::zeros({1}), "requires [2]");
  refused(".nested_absmax", at::full({2}, 3e38), "not finite");
  const auto state_refused = [&](const char* key, const Json& value, const std::string& why) {
    tensors_ = tensors;
    state_ = state;
    state_[key] = value;
    EXPECT_THAT(refusal(), HasSubstr(why));
  };
  state_refused("blocksize", 0, "has no size \"blocksize\"");
  state_refused("blocksize", 1e30, "has no size \"blocksize\"");
  state_refused("nested_blocksize", nullptr, "has no size \"nested_blocksize\"");
  state_refused("nested_offset", "a", "has no nested_offset");
  state_refused("nested_offset", 1e300, "not finite");
  state_refused("shape", {kIn, kOut}, "has the shape [10,6]");
}

}  // namespace
}  // namespace valora::models
