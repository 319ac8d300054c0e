#include "adapters/tensors/tensor_names.h"

#include <gtest/gtest.h>

namespace valora::adapters {
namespace {

// "MODULE ROLE"; empty for an invalid name.
std::string read_name(const std::string& tensor) {
  const auto name = parse_tensor_name(tensor);
  if (!name.ok()) return "";
  return name->module + " " + std::to_string(static_cast<int>(name->role)) +
         (name->below_rows ? " below rows" : "");
}

std::string named_as(const std::string& module, TensorRole role) {
  return module + " " + std::to_string(static_cast<int>(role));
}

const std::string kQuery = "model.layers.0.self_attn.q_proj", kOutputLayer = "lm_head";

TEST(TensorNames, WrapperPrefixesAreSkipped) {
  const std::string plain = named_as(kQuery, TensorRole::kLoraA);
  for (const std::string& name :
       {"base_model.model." + kQuery + ".lora_A.weight",
        "base_model.model." + kQuery + ".lora_A.x.weight",
        "module.base_model.model." + kQuery + ".lora_A.weight",
        "_orig_mod.module.base_model.model." + kQuery + ".lora_A.weight",
        std::string(
            "_fsdp_wrapped_module.base_model.model.model.layers.0._checkpoint_wrapped_module."
            "self_attn._fsdp_wrapped_module.q_proj.lora_A.default.weight"),
        "base_model.model._orig_mod." + kQuery + ".lora_A.weight"})
    EXPECT_EQ(read_name(name), plain) << name;
  // Not where a module of the model might have this name.
  EXPECT_EQ(read_name("base_model.model.module." + kQuery + ".lora_A.weight"),
            named_as("module." + kQuery, TensorRole::kLoraA));
  for (const std::string name :
       {"", "_orig_mod", "_orig_mod.", "module.", "base_model.model.",
        "base_model.model._orig_mod.", "base_model.model..weight", "base_model._orig_mod"})
    EXPECT_EQ(read_name(name), "") << name;
}

TEST(TensorNames, WholeModuleNamesAreRecognised) {
  const std::string before = "base_model.model.",
                    weight = named_as(kOutputLayer, TensorRole::kWeight);
  for (const std::string part : {"", ".base_layer", ".modules_to_save", ".modules_to_save.default"})
    EXPECT_EQ(read_name(before + kOutputLayer + part + ".weight"), weight) << part;
  EXPECT_EQ(read_name(before + kOutputLayer + ".token_adapter.base_layer.weight"),
            weight + " below rows");
  EXPECT_EQ(read_name(before + kOutputLayer + ".original_module.weight"),
            named_as(kOutputLayer, TensorRole::kOriginal));
  EXPECT_EQ(read_name(before + "modules_to_save.default.weight"),
            named_as("modules_to_save.default", TensorRole::kWeight));
  EXPECT_EQ(read_name(before + "original_module.weight"),
            named_as("original_module", TensorRole::kWeight));
  for (const std::string part : {"", ".modules_to_save.default"})
    EXPECT_EQ(read_name(before + "v_head" + part + ".summary.bias"),
              named_as("v_head", TensorRole::kBias));
}

}  // namespace
}  // namespace valora::adapters
