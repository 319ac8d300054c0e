// Quantised linears: decoded bit-exactly as the layouts specify, and refused if malformed.
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
using testing::RandomIntegers;
using testing::raw;
using Tensors = std::map<std::string, valora::testing::RawTensor>;

constexpr char kName[] = "model.layers.0.mlp.up_proj";

Json compressed(const char* format, int bits, int64_t group, bool symmetric = true) {
  Json weights = {{"num_bits", bits}, {"type", "int"}, {"symmetric", symmetric}};
  weights["strategy"] = group < 0 ? "channel" : "group";
  weights["group_size"] = group;
  return {{"quant_method", "compressed-tensors"},
          {"format", format},
          {"quantization_status", "compressed"},
          {"config_groups", {{"group_0", {{"targets", {"Linear"}}, {"weights", weights}}}}},
          {"ignore", {"lm_head"}}};
}
Json gptq(int bits, int64_t group, const char* format) {
  return {{"quant_method", "gptq"},
          {"bits", bits},
          {"group_size", group},
          {"checkpoint_format", format}};
}
Json awq(int64_t group) {
  return {{"quant_method", "awq"}, {"bits", 4}, {"group_size", group}, {"version", "gemm"}};
}

class QuantisedWeightsTest : public ::testing::Test {
 protected:
  std::unique_ptr<Weights> open(const Json& quantisation) {
    dir_.write("model.safetensors", valora::testing::safetensors_text(tensors_));
    auto weights = Weights::open(dir_.path()).value();
    weights->set_aliases({{"language_model.model.", "model.language_model."}});
    const ConfigReader config({{"quantization_config", quantisation}}, "config.json");
    auto read = read_quantised_config(config);
    weights->set_quantisation(std::make_shared<const QuantisedConfig>(std::move(*read)));
    return weights;
  }
  void expect(const Json& quantisation, const at::Tensor& decoded) {
    auto weights = open(quantisation);
    const int64_t out = decoded.size(0), in = decoded.size(1);
    EXPECT_TRUE(at::equal(weights->linear(kName, out, in, false).unpacked(), decoded));
    EXPECT_THAT(weights->unused(), ::testing::IsEmpty());
    EXPECT_EQ(weights->parameters(), out * in);
    ASSERT_TRUE(weights->unmap().ok());
    ops::Weight again(at::zeros({out, in}), at::kFloat, at::kCPU);
    weights->refill(kName, again, LinearSlice::whole(again.out(), again.in()));
    EXPECT_TRUE(at::equal(again.unpacked(), decoded)) << "from the files";
    weights = open(quantisation);
    weights->set_target(at::kBFloat16, at::kCPU);
    weights->set_plain(true);
    EXPECT_TRUE(
        at::equal(weights->linear(kName, out, in, false).data(), decoded.to(at::kBFloat16)));
    weights->set_target(at::kBFloat16, at::kMeta);
    EXPECT_EQ(weights->linear(kName, out, in, false).data().sizes(), decoded.sizes());
  }
  std::string refusal(const Json& quantisation, int64_t out, int64_t in) {
    try {
      open(quantisation)->linear(kName, out, in, false);
      return "accepted";
    } catch (const LoadError& e) {
      return e.error().message;
    }
  }

  valora::testing::TempDir dir_;
  Tensors tensors_;
};

TEST_F(QuantisedWeightsTest, CompressedTensorsWordsDecode) {
  for (const int bits : {4, 8})
    for (const bool symmetric : {true, false})
      for (const int64_t group : {int64_t{-1}, int64_t{5}}) {
        tensors_.clear();
        const RandomIntegers made(7, 15, bits, group < 0 ? 15 : group, symmetric);
        made.store_compressed(tensors_, kName, symmetric);
        SCOPED_TRACE(std::to_string(bits) + (symmetric ? " symmetric " : " ") +
                     std::to_string(group));
        expect(compressed("pack-quantized", bits, group, symmetric), made.decoded());
      }
}

TEST_F(QuantisedWeightsTest, UnpackedZeroPointsDecode) {
  const RandomIntegers made(7, 15, 4, 5, false);
  made.store_compressed(tensors_, kName, false);
  tensors_[std::string(kName) + ".weight_zero_point"] = raw((made.zeros.to(at::kChar) - 8));
  expect(compressed("pack-quantized", 4, 5, false), made.decoded());
}

TEST_F(QuantisedWeightsTest, ReorderedInputGroupsDecode) {
  const at::Tensor order = at::tensor({2, 0, 1, 1, 2, 0, 0, 2, 1}, at::kLong);
  const RandomIntegers made(8, 9, 4, 3, false);
  made.store_compressed(tensors_, kName, false);
  tensors_[std::string(kName) + ".weight_g_idx"] = raw(order.to(at::kInt));
  expect(compressed("pack-quantized", 4, 3, false), made.decoded(order));
  tensors_[std::string(kName) + ".weight_g_idx"] = raw(at::full({9}, -1, at::kInt));
  expect(compressed("pack-quantized", 4, 3, false), made.decoded());
}

TEST_F(QuantisedWeightsTest, UnpackedIntegersDecode) {
  for (const char* format : {"int-quantized", "naive-quantized"}) {
    const RandomIntegers made(7, 15, 8, 15, true);
    tensors_[std::string(kName) + ".weight"] =
        raw((made.values.to(at::kShort) - 128).to(at::kChar));
    tensors_[std::string(kName) + ".weight_scale"] = raw(made.scales.to(at::kBFloat16));
    RandomIntegers rounded = made;
    rounded.scales = made.scales.to(at::kBFloat16).to(at::kFloat);
    expect(compressed(format, 8, -1), rounded.decoded());
  }
}

TEST_F(QuantisedWeightsTest, BitsAndBytesIntegersDecode) {
  const Json eight = {{"quant_method", "bitsandbytes"}, {"load_in_8bit", true}};
  const std::string name = kName;
  const RandomIntegers made(7, 15, 8, 15, true);
  const at::Tensor largest = made.scales.view({-1}) * 127;
  const auto store = [&] {
    tensors_.clear();
    tensors_[name + ".weight"] = raw((made.values.to(at::kShort) - 128).to(at::kChar));
    tensors_[name + ".SCB"] = raw(largest);
    tensors_[name + ".weight_format"] = raw(at::zeros({}, at::kByte));
  };
  store();
  RandomIntegers rounded = made;
  rounded.scales = (largest * 7.874015718698502e-3f).view({-1, 1});
  expect(eight, rounded.decoded());
  EXPECT_EQ(open(eight)->parameters(), 7 * 15);
  tensors_.erase(name + ".weight_format");  // older releases
  expect(eight, rounded.decoded());

  const auto refused = [&](const std::string& part, std::optional<at::Tensor> value,
                           const std::string& why) {
    store();
    tensors_.erase(name + "." + part);
    if (value) tensors_[name + "." + part] = raw(*value);
    EXPECT_THAT(refusal(eight, 7, 15),
                ::testing::AllOf(HasSubstr("tensor " + name + "." + part), HasSubstr(why)));
  };
  refused("weight_format", at::ones({}, at::kByte), "certain GPUs");
  refused("weight", at::zeros({7, 16}, at::kChar), "requires [7, 15]");
  refused("SCB", {}, "is missing");
  refused("SCB", at::ones({15}), "has shape [15]");
  refused("SCB", at::full({7}, std::numeric_limits<float>::quiet_NaN()), "not finite");
}

TEST_F(QuantisedWeightsTest, CheckpointDecidesInputRounding) {
  const RandomIntegers made(7, 16, 8, 16, true);
  tensors_[std::string(kName) + ".weight"] = raw((made.values.to(at::kShort) - 128).to(at::kChar));
  tensors_[std::string(kName) + ".weight_scale"] = raw(made.scales);
  Json quantisation = compressed("int-quantized", 8, -1);
  Json& inputs = quantisation["config_groups"]["group_0"]["input_activations"];
  inputs = {{"num_bits", 8}, {"strategy", "token"}, {"dynamic", true}};
  const auto rounding = [&](LinearPart part) {
    const auto weights = open(quantisation);
    const ops::Weight weight = weights->linear(kName, 7, 16, false, part);
    EXPECT_TRUE(weights->rounds_inputs());
    EXPECT_THAT(weights->unused(), ::testing::IsEmpty());
    return weight.input_rounding();
  };
  EXPECT_EQ(rounding(LinearPart::kDecoder), ops::InputRounding{});
  EXPECT_THAT(refusal(quantisation, 7, 16), HasSubstr("outside the decoder"));
  inputs = {{"num_bits", 8}, {"strategy", "tensor"}, {"dynamic", false}};
  tensors_[std::string(kName) + ".input_scale"] = raw(at::full({1}, 0.25f));
  EXPECT_EQ(rounding(LinearPart::kHead),
            (ops::InputRounding{ops::InputRounding::Grid::kInt8, 0.25f}));
  const auto weights = open(quantisation);
  weights->set_plain(true);
  EXPECT_THROW(weights->linear(kName, 7, 16, false, LinearPart::kDecoder), LoadError);
  for (const float broken : {0.f, -1.f, std::numeric_limits<float>::infinity()}) {
    tensors_[std::string(kName) + ".input_scale"] = raw(at::full({1}, broken));
    EXPECT_THAT(refusal(quantisation, 7, 16), HasSubstr("input_scale")) << broken;
  }
}

TEST_F(QuantisedWeightsTest, GptqDecodes) {
  for (const int bits : {4, 8})
    for (const bool less_one : {true, false}) {
      const RandomIntegers made(8, 24, bits, 8, false);
      made.store_gptq(tensors_, kName, less_one);
      expect(gptq(bits, 8, less_one ? "gptq" : "gptq_v2"), made.decoded());
      const at::Tensor order = at::arange(24, at::kLong).remainder(3);
      made.store_gptq(tensors_, kName, less_one, order);
      expect(gptq(bits, 8, less_one ? "gptq" : "gptq_v2"), made.decoded(order));
    }
}

// AutoGPTQ stores a bias for every linear.
TEST_F(QuantisedWeightsTest, ZeroBiasIsNotReportedUnused) {
  const RandomIntegers made(8, 8, 4, 8, true);
  made.store_gptq(tensors_, kName, true);
  tensors_[std::string(kName) + ".bias"] = raw(at::zeros({8}).to(at::kHalf));
  auto weights = open(gptq(4, 8, "gptq"));
  weights->linear(kName, 8, 8, false);
  EXPECT_THAT(weights->unused(), ::testing::IsEmpty());
  tensors_[std::string(kName) + ".bias"] = raw(at::ones({8}).to(at::kHalf));
  weights = open(gptq(4, 8, "gptq"));
  weights->linear(kName, 8, 8, false);
  EXPECT_EQ(weights->unused().size(), 1u) << "the reference leaves it out, too";
}

TEST_F(QuantisedWeightsTest, AwqDecodes) {
  const RandomIntegers made(16, 12, 4, 6, false);
  made.store_awq(tensors_, kName);
  expect(awq(6), made.decoded());
}

TEST_F(QuantisedWeightsTest, Float8Decodes) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(5);
  const at::Tensor values = at::randn({5, 7}, generator).to(at::kFloat8_e4m3fn),
                   scales = at::rand({3, 2}, generator);
  tensors_[std::string(kName) + ".weight"] = raw(values);
  tensors_[std::string(kName) + ".weight_scale_inv"] = raw(scales);
  const at::Tensor rows = at::tensor({0, 0, 1, 1, 2}, at::kLong),
                   columns = at::tensor({0, 0, 0, 0, 1, 1, 1}, at::kLong);
  expect({{"quant_method", "fp8"}, {"weight_block_size", {2, 4}}},
         values.to(at::kFloat) * scales.index_select(0, rows).index_select(1, columns));
  tensors_.clear();
  tensors_[std::string(kName) + ".weight"] = raw(values);
  tensors_[std::string(kName) + ".weight_scale"] =
      raw(scales.slice(1, 0, 1).repeat({2, 1}).slice(0, 0, 5));
  Json quantisation = compressed("float-quantized", 8, -1);
  quantisation["config_groups"]["group_0"]["weights"]["type"] = "float";
  expect(quantisation, values.to(at::kFloat) * scales.slice(1, 0, 1).repeat({2, 1}).slice(0, 0, 5));
}

TEST_F(QuantisedWeightsTest, UnquantisedTensorsStayAndAreReported) {
  const RandomIntegers made(8, 8, 4, 8, true);
  made.store_compressed(tensors_, kName, true);
  tensors_["lm_head.weight"] = raw(at::ones({8, 8}));
  tensors_["norm.weight"] = raw(at::ones({100}).to(at::kBFloat16));
  auto weights = open(compressed("pack-quantized", 4, -1));
  weights->linear(kName, 8, 8, false);
  weights->linear("lm_head", 8, 8, false);
  const auto report = weights->quantised().value();
  EXPECT_EQ(report.linears, 1);
  EXPECT_EQ(report.kept, std::vector<std::string>{"lm_head"});
  EXPECT_EQ(report.text("float32"),
            "1 linear of 4 bits with a scale per output (compressed-tensors pack-quantized), "
            "served in integers; 1 not quantised: lm_head");
  EXPECT_EQ(weights->parameters(), 64 + 64 + 100);
  EXPECT_EQ(weights->stored_dtype(), at::kFloat) << "not that of the words";
  EXPECT_TRUE(weights->has_linear(kName));
  EXPECT_FALSE(weights->has(std::string(kName) + ".weight"));
}

TEST_F(QuantisedWeightsTest, StayIntegersIfKernelsSupportGroupSize) {
  const RandomIntegers made(16, 48, 4, 24, false);
  made.store_compressed(tensors_, kName, false);
  const Json groups = compressed("pack-quantized", 4, 24, false);
  auto weights = open(groups);
  const ops::Weight kept = weights->linear(kName, 16, 48, false);
  EXPECT_TRUE(kept.encoding() == (ops::Encoding{4, 24}));
  EXPECT_TRUE(weights->keeps_integers());
  EXPECT_EQ(weights->quantised()->integers, 1);
  EXPECT_EQ(weights->held().all(), kept.bytes());
  weights = open(groups);
  weights->set_target(at::kFloat, at::kMeta);
  weights->linear(kName, 16, 48, false);
  EXPECT_EQ(weights->quantised()->integers, 1);
  EXPECT_NEAR(static_cast<double>(weights->held().all()), static_cast<double>(kept.bytes()),
              0.25 * static_cast<double>(kept.bytes()));
  for (const int64_t group : {int64_t{12}, int64_t{24}}) {
    tensors_.clear();
    RandomIntegers(16, 48, 4, group, false).store_compressed(tensors_, kName, false);
    weights = open(compressed("pack-quantized", 4, group, false));
    weights->set_plain(group == 24);  // for training
    EXPECT_FALSE(weights->linear(kName, 16, 48, false).quantised());
    EXPECT_FALSE(weights->keeps_integers());
    EXPECT_EQ(weights->quantised()->integers, 0);
    EXPECT_THAT(weights->quantised()->text("bfloat16"), HasSubstr("decoded to bfloat16"));
  }
}

// One folder may hold linears of several encodings, named as in any release.
TEST_F(QuantisedWeightsTest, SchemeFollowsLinearName) {
  const std::string first = "language_model.model.layers.0.mlp.up_proj",
                    second = "language_model.model.layers.1.mlp.up_proj";
  const RandomIntegers four(8, 8, 4, 8, true), eight(8, 8, 8, 8, true);
  four.store_compressed(tensors_, first, true);
  eight.store_compressed(tensors_, second, true);
  Json quantisation = compressed("pack-quantized", 4, -1);
  Json other = quantisation["config_groups"]["group_0"];
  other["weights"]["num_bits"] = 8;
  other["targets"] = {"re:model\\.language_model\\.layers\\.1\\..*"};
  quantisation["config_groups"]["group_1"] = other;
  auto weights = open(quantisation);
  const std::string layers = "model.language_model.layers.";
  EXPECT_TRUE(
      at::equal(weights->linear(layers + "0.mlp.up_proj", 8, 8, false).unpacked(), four.decoded()));
  EXPECT_TRUE(at::equal(weights->linear(layers + "1.mlp.up_proj", 8, 8, false).unpacked(),
                        eight.decoded()));
  // It excepts nothing under the names of the newest release.
  quantisation["ignore"] = {"re:language_model.*layers.0.*"};
  weights = open(quantisation);
  EXPECT_TRUE(
      at::equal(weights->linear(layers + "0.mlp.up_proj", 8, 8, false).unpacked(), four.decoded()));
  quantisation["ignore"] = {"re:.*language_model.*layers.0.*"};
  weights = open(quantisation);
  try {
    weights->linear(layers + "0.mlp.up_proj", 8, 8, false);
    FAIL();
  } catch (const LoadError& e) {
    EXPECT_THAT(e.error().message, HasSubstr("says that it is not (ignore)"));
    EXPECT_THAT(e.error().message, HasSubstr("model.safetensors: tensor " + first));
  }
}

TEST_F(QuantisedWeightsTest, SketchCoversQuantisationScheme) {
  RandomIntegers(8, 8, 4, 8, false).store_gptq(tensors_, kName, false);
  EXPECT_NE(open(gptq(4, 8, "gptq"))->sketch(), open(gptq(4, 8, "gptq_v2"))->sketch());
}

TEST_F(QuantisedWeightsTest, BrokenTensorsAreRefusedByName) {
  const std::string name = kName;
  const Json packed = compressed("pack-quantized", 4, 5, false);
  const RandomIntegers made(7, 15, 4, 5, false);
  const auto refused = [&](const std::string& part, std::optional<at::Tensor> value,
                           const std::string& why) {
    tensors_.clear();
    made.store_compressed(tensors_, name, false);
    tensors_.erase(name + "." + part);
    if (value) tensors_[name + "." + part] = raw(*value);
    const std::string message = refusal(packed, 7, 15);
    EXPECT_THAT(message, HasSubstr("tensor " + name + "." + part)) << message;
    EXPECT_THAT(message, HasSubstr(why)) << message;
  };
  at::Tensor infinite = made.scales.clone();
  infinite[6][2] = std::numeric_limits<float>::quiet_NaN();
  refused("weight_scale", infinite, "not finite");
  refused("weight_scale", {}, "is missing");
  refused("weight_scale", made.scales.slice(1, 0, 2), "has shape [7, 2]");
  refused("weight_scale", made.values.to(at::kInt), "has dtype I32");
  refused("weight_packed", at::zeros({7, 3}, at::kInt), "requires [7, 2]");
  refused("weight_packed", at::zeros({7, 2}, at::kLong), "has dtype I64");
  refused("weight_zero_point", {}, "is missing");
  refused("weight_zero_point", at::zeros({7, 3}, at::kInt), "requires [1, 3]");
  refused("weight_zero_point", at::full({7, 3}, 9, at::kChar), "outside of 4 bits");
  refused("weight_shape", at::tensor({7, 16}, at::kLong), "is not [7, 15]");
  refused("weight_shape", {}, "is missing");
  refused("weight_g_idx", at::full({15}, 3, at::kInt), "outside of the 3");
  refused("weight_g_idx", at::zeros({15}, at::kInt), "each group its 5");
  refused("weight_g_idx", at::zeros({14}, at::kInt), "has shape [14]");
  refused("weight", at::zeros({7, 15}), "weight_packed is stored as well as weight");
}

TEST_F(QuantisedWeightsTest, MismatchedSizesAreRefused) {
  RandomIntegers(7, 15, 4, 5, true).store_compressed(tensors_, kName, true);
  EXPECT_THAT(refusal(compressed("pack-quantized", 4, 4), 7, 15), HasSubstr("do not divide"));
  RandomIntegers(8, 12, 4, 6, false).store_gptq(tensors_, kName, true);
  tensors_.erase(std::string(kName) + ".weight_packed");
  EXPECT_THAT(refusal(gptq(4, 6, "gptq"), 8, 12), HasSubstr("words have 8"));
  EXPECT_THAT(refusal(awq(6), 8, 12), HasSubstr("requires [12, 1]"));
}

TEST_F(QuantisedWeightsTest, OutOfRangeZeroPointsAreRefused) {
  RandomIntegers made(8, 8, 4, 8, false);
  made.zeros.fill_(0);  // stored as 15
  made.store_gptq(tensors_, kName, false);
  tensors_[std::string(kName) + ".qzeros"] = raw(at::full({1, 1}, -1, at::kInt));
  EXPECT_THAT(refusal(gptq(4, 8, "gptq"), 8, 8), HasSubstr("zero-point of 16 less one"));
  tensors_[std::string(kName) + ".g_idx"] = raw(at::full({8}, 1, at::kInt));
  EXPECT_THAT(refusal(gptq(4, 8, "gptq_v2"), 8, 8), HasSubstr("g_idx has groups outside"));
}

TEST_F(QuantisedWeightsTest, FloatsWithScalesAreRefused) {
  tensors_[std::string(kName) + ".weight"] = raw(at::ones({8, 8}));
  tensors_[std::string(kName) + ".weight_scale"] = raw(at::ones({8, 1}));
  EXPECT_THAT(refusal(compressed("pack-quantized", 4, -1), 8, 8),
              HasSubstr("but the weights are stored as F32"));
}

TEST_F(QuantisedWeightsTest, ErrorNamesMissingConfiguration) {
  RandomIntegers(8, 8, 4, 8, true).store_awq(tensors_, kName);
  dir_.write("model.safetensors", valora::testing::safetensors_text(tensors_));
  auto weights = Weights::open(dir_.path()).value();
  try {
    weights->linear(kName, 8, 8, false);
    FAIL();
  } catch (const LoadError& e) {
    EXPECT_THAT(e.error().message, HasSubstr("config.json has no quantization_config"));
  }
}

}  // namespace
}  // namespace valora::models
