// Writes a Qwen2 checkpoint with random weights (a few kilobytes), and adapters for it.
#pragma once

#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/testing/safetensors_text.h"
#include "base/testing/temp_dir.h"
#include "text/testing/tiny_tokenizer.h"

namespace valora::testing {

inline constexpr int kVocab = 264, kHidden = 16, kInner = 24, kLayers = 2, kHeads = 4, kKvHeads = 2,
                     kHeadDim = 4;

inline RawTensor random_tensor(std::vector<int64_t> shape, std::mt19937& rng, float scale) {
  std::normal_distribution<float> normal(0, scale);
  int64_t count = 1;
  for (const int64_t n : shape) count *= n;
  std::vector<float> values(count);
  for (float& value : values) value = normal(rng);
  return f32_tensor(std::move(shape), values);
}

inline Json tiny_config() {
  return {{"architectures", {"Qwen2ForCausalLM"}},
          {"vocab_size", kVocab},
          {"hidden_size", kHidden},
          {"intermediate_size", kInner},
          {"num_hidden_layers", kLayers},
          {"num_attention_heads", kHeads},
          {"num_key_value_heads", kKvHeads},
          {"max_position_embeddings", 512},
          {"tie_word_embeddings", false},
          {"rope_theta", 10000.0},
          {"torch_dtype", "float32"},
          {"eos_token_id", 260}};
}

inline std::map<std::string, RawTensor> tiny_weights(uint32_t seed) {
  std::mt19937 rng(seed);
  std::map<std::string, RawTensor> tensors;
  const auto add = [&](const std::string& name, std::vector<int64_t> shape, float scale = 0.4f) {
    tensors[name] = random_tensor(std::move(shape), rng, scale);
  };
  add("model.embed_tokens.weight", {kVocab, kHidden}, 1);
  add("lm_head.weight", {kVocab, kHidden}, 1);
  add("model.norm.weight", {kHidden}, 1);
  for (int i = 0; i < kLayers; ++i) {
    const std::string layer = "model.layers." + std::to_string(i) + ".";
    add(layer + "input_layernorm.weight", {kHidden}, 1);
    add(layer + "post_attention_layernorm.weight", {kHidden}, 1);
    for (const auto& [name, rows] : {std::pair("q", kHeads * kHeadDim),
                                     {"k", kKvHeads * kHeadDim},
                                     {"v", kKvHeads * kHeadDim}}) {
      add(layer + "self_attn." + name + "_proj.weight", {rows, kHidden});
      add(layer + "self_attn." + name + "_proj.bias", {rows});
    }
    add(layer + "self_attn.o_proj.weight", {kHidden, kHeads * kHeadDim});
    add(layer + "mlp.gate_proj.weight", {kInner, kHidden});
    add(layer + "mlp.up_proj.weight", {kInner, kHidden});
    add(layer + "mlp.down_proj.weight", {kHidden, kInner});
  }
  return tensors;
}

inline void write_tiny_model(const TempDir& dir, uint32_t seed = 1) {
  dir.write("config.json", tiny_config().dump());
  dir.write("tokenizer.json", text::tiny_tokenizer_json().dump());
  dir.write("generation_config.json", R"({"eos_token_id": 260, "do_sample": false})");
  dir.write("model.safetensors", safetensors_text(tiny_weights(seed)));
}

// An adapter of rank 3 on q_proj and down_proj of all layers. If labels > 0, it has a head "score"
// with that many labels.
inline void write_tiny_adapter(const TempDir& dir, uint32_t seed, int labels = 0) {
  std::mt19937 rng(seed);
  std::map<std::string, RawTensor> tensors;
  const auto add = [&](const std::string& module, int64_t in, int64_t out) {
    tensors["base_model.model." + module + ".lora_A.weight"] = random_tensor({3, in}, rng, 1);
    tensors["base_model.model." + module + ".lora_B.weight"] = random_tensor({out, 3}, rng, 1);
  };
  for (int i = 0; i < kLayers; ++i) {
    const std::string layer = "model.layers." + std::to_string(i) + ".";
    add(layer + "self_attn.q_proj", kHidden, kHeads * kHeadDim);
    add(layer + "mlp.down_proj", kInner, kHidden);
  }
  Json config = {{"peft_type", "LORA"},
                 {"r", 3},
                 {"lora_alpha", 6},
                 {"target_modules", {"q_proj", "down_proj"}}};
  if (labels > 0) {
    config["modules_to_save"] = {"score"};
    tensors["base_model.model.score.weight"] = random_tensor({labels, kHidden}, rng, 1);
  }
  dir.write("adapter_config.json", config.dump());
  dir.write("adapter_model.safetensors", safetensors_text(tensors));
}

// An adapter of rank 3 whose products overflow.
inline void write_overflowing_adapter(const TempDir& dir) {
  std::map<std::string, RawTensor> tensors;
  for (const std::string half : {"A", "B"})
    tensors["base_model.model.model.layers.0.self_attn.q_proj.lora_" + half + ".weight"] =
        f32_tensor(
            half == "A" ? std::vector<int64_t>{3, kHidden} : std::vector<int64_t>{kHidden, 3},
            std::vector<float>(3 * kHidden, 3e38f));
  dir.write("adapter_model.safetensors", safetensors_text(tensors));
  dir.write(
      "adapter_config.json",
      R"({"peft_type": "LORA", "r": 3, "target_modules": ["model.layers.0.self_attn.q_proj"]})");
}

}  // namespace valora::testing
