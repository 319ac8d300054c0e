// A small PEFT folder for tests: valid by default, modified as a test needs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "adapters/adapter_spec.h"
#include "base/testing/safetensors_text.h"
#include "base/testing/temp_dir.h"

namespace valora::adapters::testing {

using valora::testing::f32_tensor;
using valora::testing::RawTensor;
using valora::testing::safetensors_text;
using valora::testing::TempDir;

inline constexpr int kHidden = 4;
inline constexpr int kInner = 6;
inline constexpr const char* kQ0 = "model.language_model.layers.0.self_attn.q_proj";
inline constexpr const char* kQ1 = "model.language_model.layers.1.self_attn.q_proj";

// Two layers of two linears each (index 2 * layer, 2 * layer + 1), then modules that cannot be
// served.
inline ModuleTable small_table() {
  std::vector<Module> modules;
  for (int layer = 0; layer < 2; ++layer) {
    const std::string prefix = "model.language_model.layers." + std::to_string(layer);
    modules.push_back({prefix + ".self_attn.q_proj", kHidden, kHidden, layer});
    modules.push_back({prefix + ".mlp.up_proj", kHidden, kInner, layer});
  }
  modules.push_back({"model.visual.blocks.0.attn.qkv", 2, 2, 0, true, ModuleKind::kOther});
  modules.push_back({"lm_head", kHidden, 10, -1, false, ModuleKind::kHead});
  return ModuleTable(
      std::move(modules),
      {{"model.layers.", "model.language_model.layers."}, {"visual.", "model.visual."}}, kHidden);
}

inline RawTensor filled(std::vector<int64_t> shape, float first) {
  int64_t count = 1;
  for (const int64_t n : shape) count *= n;
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(first + 0.25f * static_cast<float>(i));
  return f32_tensor(std::move(shape), values);
}

class AdapterFolder {
 public:
  // By default, rank 2 on q_proj of both layers.
  AdapterFolder() {
    config = {{"peft_type", "LORA"}, {"r", 2}, {"lora_alpha", 3}, {"target_modules", {"q_proj"}}};
    add_lora(kQ0, 2, kHidden, kHidden);
    add_lora(kQ1, 2, kHidden, kHidden);
  }

  static std::string key(const std::string& module, const std::string& parameter) {
    return "base_model.model." + module + "." + parameter;
  }
  void add_lora(const std::string& module, int64_t rank, int64_t in, int64_t out) {
    tensors[key(module, "lora_A.weight")] = filled({rank, in}, 1);
    tensors[key(module, "lora_B.weight")] = filled({out, rank}, -1);
  }
  void add_head(const std::string& name, int64_t labels) {
    config["modules_to_save"].push_back(name);
    tensors[key(name, "weight")] = filled({labels, kHidden}, 0.5f);
  }

  // Writes the folder from the members, then reads it.
  Result<AdapterSpec> read(AdapterLimits limits = {}, size_t padding = 0) const {
    write(padding);
    return read_adapter(dir.path(), small_table(), limits);
  }
  Result<AdapterSpec> read_headers(AdapterLimits limits = {}) const {
    write();
    return read_adapter_headers(dir.path(), small_table(), limits);
  }
  void write(size_t padding = 0) const {
    dir.write("adapter_config.json", config.dump());
    dir.write("adapter_model.safetensors", safetensors_text(tensors, padding));
    if (!sidecar.is_null()) dir.write("valora.json", sidecar.dump());
  }
  std::string refusal(AdapterLimits limits = {}) const {
    const auto spec = read(limits);
    return spec.ok() ? "accepted" : spec.error().message;
  }

  TempDir dir;
  Json config;
  Json sidecar;
  std::map<std::string, RawTensor> tensors;
};

}  // namespace valora::adapters::testing
