// Tiny random checkpoints of every family with a vision tower.
#pragma once

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/json/json.h"
#include "base/testing/safetensors_text.h"

namespace valora::models::testing {

using valora::testing::f32_tensor;
using valora::testing::RawTensor;
using valora::testing::safetensors_text;

inline constexpr int kWidth = 16, kMlp = 20, kOut = 8, kPatch = 2, kDepth = 2;

// Random tensors by name.
class Tensors {
 public:
  void add(const std::string& name, std::vector<int64_t> shape) {
    const at::Tensor values = 0.5 * at::randn(shape, generator_);
    const float* data = values.const_data_ptr<float>();
    all_[name] = f32_tensor(std::move(shape), {data, data + values.numel()});
  }
  void linear(const std::string& name, int64_t out, int64_t in, bool bias = true) {
    add(name + ".weight", {out, in});
    if (bias) add(name + ".bias", {out});
  }
  void norm(const std::string& name, bool bias = true) {
    add(name + ".weight", {kWidth});
    if (bias) add(name + ".bias", {kWidth});
  }
  void decoder(bool bias, const std::string& prefix = "model.language_model.") {
    const std::string layer = prefix + "layers.0.";
    for (const char* name : {"input_layernorm", "post_attention_layernorm"})
      add(layer + name + ".weight", {kOut});
    linear(layer + "self_attn.q_proj", kOut, kOut, bias);
    for (const char* name : {"k_proj", "v_proj"})
      linear(layer + "self_attn." + name, kOut / 2, kOut, bias);
    linear(layer + "self_attn.o_proj", kOut, kOut, false);
    for (const char* name : {"gate_proj", "up_proj"}) linear(layer + "mlp." + name, 6, kOut, false);
    linear(layer + "mlp.down_proj", kOut, 6, false);
    add(prefix + "embed_tokens.weight", {10, kOut});
    add(prefix + "norm.weight", {kOut});
    add("lm_head.weight", {10, kOut});
  }
  void erase(const std::string& name) { all_.erase(name); }
  void rename(const std::string& from, const std::string& to) {
    auto tensor = all_.extract(from);
    tensor.key() = to;
    all_.insert(std::move(tensor));
  }
  std::string text() const { return safetensors_text(all_); }

 private:
  std::map<std::string, RawTensor> all_;
  at::Generator generator_ = at::make_generator<at::CPUGeneratorImpl>(5);
};

inline Json language(const char* architecture) {
  return {{"architectures", {architecture}},
          {"vocab_size", 10},
          {"hidden_size", kOut},
          {"intermediate_size", 6},
          {"num_hidden_layers", 1},
          {"num_attention_heads", 2},
          {"num_key_value_heads", 1},
          {"max_position_embeddings", 64},
          {"rope_scaling", {{"rope_type", "default"}, {"mrope_section", {1, 1, 0}}}}};
}

struct TinyTower {
  const char* name;
  Json config;
  Tensors tensors;
  std::string adapted;  // the linear of the tower that the adapter targets
  int64_t in = 0, out = 0;
  int patch_dim = 0;
  int merge = 1;
  bool square = false;    // takes pictures of one size only
  int tiles = 0;          // patches per side of every tile; 0: any
  bool newlines = false;  // LLaVA-NeXT: a token after each row of tiles
  int tokens = 0;         // per picture; 0: one per merged patch
  int width = kOut;       // width of the decoder
};

inline TinyTower qwen2_vl() {
  TinyTower c{"Qwen2VL",
              language("Qwen2VLForConditionalGeneration"),
              {},
              "model.visual.blocks.0.mlp.fc1",
              kWidth,
              4 * kWidth,
              3 * 2 * kPatch * kPatch,
              2};
  c.config["vision_config"] = {{"depth", kDepth},
                               {"embed_dim", kWidth},
                               {"num_heads", 2},
                               {"hidden_size", kOut},
                               {"patch_size", kPatch}};
  Tensors& t = c.tensors;
  t.decoder(true);
  t.add("model.visual.patch_embed.proj.weight", {kWidth, 3, 2, kPatch, kPatch});
  for (int i = 0; i < kDepth; ++i) {
    const std::string block = "model.visual.blocks." + std::to_string(i) + ".";
    t.norm(block + "norm1"), t.norm(block + "norm2");
    t.linear(block + "attn.qkv", 3 * kWidth, kWidth);
    t.linear(block + "attn.proj", kWidth, kWidth);
    t.linear(block + "mlp.fc1", 4 * kWidth, kWidth);
    t.linear(block + "mlp.fc2", kWidth, 4 * kWidth);
  }
  t.norm("model.visual.merger.ln_q");
  t.linear("model.visual.merger.mlp.0", 4 * kWidth, 4 * kWidth);
  t.linear("model.visual.merger.mlp.2", kOut, 4 * kWidth);
  return c;
}

inline TinyTower qwen2_5_vl() {
  TinyTower c{"Qwen2_5VL",
              language("Qwen2_5_VLForConditionalGeneration"),
              {},
              "model.visual.blocks.1.mlp.up_proj",
              kWidth,
              kMlp,
              3 * 2 * kPatch * kPatch,
              2};
  c.config["vision_config"] = {
      {"depth", kDepth},           {"hidden_size", kWidth},       {"num_heads", 2},
      {"out_hidden_size", kOut},   {"patch_size", kPatch},        {"intermediate_size", kMlp},
      {"window_size", 4 * kPatch}, {"fullatt_block_indexes", {1}}};
  Tensors& t = c.tensors;
  t.decoder(true);
  t.add("model.visual.patch_embed.proj.weight", {kWidth, 3, 2, kPatch, kPatch});
  for (int i = 0; i < kDepth; ++i) {
    const std::string block = "model.visual.blocks." + std::to_string(i) + ".";
    t.norm(block + "norm1", false), t.norm(block + "norm2", false);
    t.linear(block + "attn.qkv", 3 * kWidth, kWidth);
    t.linear(block + "attn.proj", kWidth, kWidth);
    t.linear(block + "mlp.gate_proj", kMlp, kWidth);
    t.linear(block + "mlp.up_proj", kMlp, kWidth);
    t.linear(block + "mlp.down_proj", kWidth, kMlp);
  }
  t.norm("model.visual.merger.ln_q", false);
  t.linear("model.visual.merger.mlp.0", 4 * kWidth, 4 * kWidth);
  t.linear("model.visual.merger.mlp.2", kOut, 4 * kWidth);
  return c;
}

inline TinyTower qwen3_vl() {
  TinyTower c{"Qwen3VL",
              language("Qwen3VLForConditionalGeneration"),
              {},
              "model.visual.blocks.1.mlp.linear_fc1",
              kWidth,
              kMlp,
              3 * 2 * kPatch * kPatch,
              2};
  c.config["head_dim"] = kOut / 2;
  c.config["rope_theta"] = 10000;
  c.config["vision_config"] = {{"depth", kDepth},
                               {"hidden_size", kWidth},
                               {"num_heads", 2},
                               {"out_hidden_size", kOut},
                               {"patch_size", kPatch},
                               {"intermediate_size", kMlp},
                               {"num_position_embeddings", 9},
                               {"deepstack_visual_indexes", {0}}};
  Tensors& t = c.tensors;
  t.decoder(false);
  for (const char* name : {"q_norm", "k_norm"})
    t.add(std::string("model.language_model.layers.0.self_attn.") + name + ".weight", {kOut / 2});
  t.add("model.visual.patch_embed.proj.weight", {kWidth, 3, 2, kPatch, kPatch});
  t.add("model.visual.patch_embed.proj.bias", {kWidth});
  t.add("model.visual.pos_embed.weight", {9, kWidth});
  for (int i = 0; i < kDepth; ++i) {
    const std::string block = "model.visual.blocks." + std::to_string(i) + ".";
    t.norm(block + "norm1"), t.norm(block + "norm2");
    t.linear(block + "attn.qkv", 3 * kWidth, kWidth);
    t.linear(block + "attn.proj", kWidth, kWidth);
    t.linear(block + "mlp.linear_fc1", kMlp, kWidth);
    t.linear(block + "mlp.linear_fc2", kWidth, kMlp);
  }
  t.norm("model.visual.merger.norm");
  for (const char* norm : {"weight", "bias"})
    t.add(std::string("model.visual.deepstack_merger_list.0.norm.") + norm, {4 * kWidth});
  for (const char* merger : {"merger", "deepstack_merger_list.0"}) {
    t.linear(std::string("model.visual.") + merger + ".linear_fc1", 4 * kWidth, 4 * kWidth);
    t.linear(std::string("model.visual.") + merger + ".linear_fc2", kOut, 4 * kWidth);
  }
  return c;
}

// The layers of CLIP and SigLIP.
inline void add_clip_layers(Tensors& t, const std::string& tower) {
  for (int i = 0; i < kDepth; ++i) {
    const std::string layer = tower + "encoder.layers." + std::to_string(i) + ".";
    t.norm(layer + "layer_norm1"), t.norm(layer + "layer_norm2");
    for (const char* name : {"k_proj", "v_proj", "q_proj", "out_proj"})
      t.linear(layer + "self_attn." + name, kWidth, kWidth);
    t.linear(layer + "mlp.fc1", kMlp, kWidth);
    t.linear(layer + "mlp.fc2", kWidth, kMlp);
  }
}

inline TinyTower llava() {
  const std::string tower = "model.vision_tower.vision_model.";
  TinyTower c{"Llava",
              {},
              {},
              tower + "encoder.layers.0.self_attn.v_proj",
              kWidth,
              kWidth,
              3 * kPatch * kPatch,
              1,
              true};
  Json text = language("LlamaForCausalLM");
  text.erase("rope_scaling");
  c.config = {{"architectures", {"LlavaForConditionalGeneration"}},
              {"text_config", text},
              {"vision_feature_layer", {0, 1, 2}},
              {"vision_config",
               {{"hidden_size", kWidth},
                {"intermediate_size", kMlp},
                {"num_attention_heads", 2},
                {"num_hidden_layers", kDepth},
                {"image_size", 5 * kPatch},
                {"patch_size", kPatch}}}};
  Tensors& t = c.tensors;
  t.decoder(false);
  t.add(tower + "embeddings.class_embedding", {kWidth});
  t.add(tower + "embeddings.patch_embedding.weight", {kWidth, 3, kPatch, kPatch});
  t.add(tower + "embeddings.position_embedding.weight", {26, kWidth});
  t.norm(tower + "pre_layrnorm");
  add_clip_layers(t, tower);
  t.linear("model.multi_modal_projector.linear_1", kOut, 3 * kWidth);
  t.linear("model.multi_modal_projector.linear_2", kOut, kOut);
  return c;
}

// siglip: LLaVA-OneVision; otherwise LLaVA-NeXT.
inline TinyTower llava_in_tiles(bool siglip) {
  const std::string tower = "model.vision_tower.vision_model.";
  TinyTower c = llava();
  c.name = siglip ? "LlavaOnevision" : "LlavaNext";
  c.square = false;
  c.tiles = 5;
  c.newlines = true;
  c.config["architectures"] = {siglip ? "LlavaOnevisionForConditionalGeneration"
                                      : "LlavaNextForConditionalGeneration"};
  c.config["image_grid_pinpoints"] = {{10, 20}, {20, 10}};
  c.config["text_config"]["model_type"] = siglip ? "qwen2" : "mistral";
  c.tensors.add("model.image_newline", {kOut});
  if (!siglip) return c;
  c.config["vision_config"]["vision_use_head"] = false;
  c.config["vision_config"]["model_type"] = "siglip_vision_model";
  Tensors& t = c.tensors;
  for (const char* name : {"q_proj", "k_proj", "v_proj"})
    t.add(std::string("model.language_model.layers.0.self_attn.") + name + ".bias",
          {name[0] == 'q' ? kOut : kOut / 2});
  t.erase(tower + "embeddings.class_embedding");
  t.erase(tower + "pre_layrnorm.weight"), t.erase(tower + "pre_layrnorm.bias");
  t.add(tower + "embeddings.patch_embedding.bias", {kWidth});
  t.add(tower + "embeddings.position_embedding.weight", {25, kWidth});
  return c;
}
// merges: Mistral 3; otherwise Pixtral.
inline TinyTower pixtral_named(bool merges) {
  const std::string tower = "model.vision_tower.", projector = "model.multi_modal_projector.";
  TinyTower c{merges ? "Mistral3" : "Pixtral",
              {},
              {},
              tower + "transformer.layers.1.feed_forward.down_proj",
              kMlp,
              kWidth,
              3 * kPatch * kPatch,
              merges ? 2 : 1};
  Json text = language("MistralForCausalLM");
  text.erase("rope_scaling");
  text["model_type"] = "mistral";
  c.config = {{"architectures",
               {merges ? "Mistral3ForConditionalGeneration" : "LlavaForConditionalGeneration"}},
              {"text_config", text},
              {"tie_word_embeddings", false},
              {"vision_feature_layer", merges ? Json(-1) : Json{1, 2}},
              {"vision_config",
               {{"model_type", "pixtral"},
                {"hidden_size", kWidth},
                {"intermediate_size", kMlp},
                {"num_attention_heads", 2},
                {"num_hidden_layers", kDepth},
                {"image_size", 100 * kPatch},
                {"patch_size", kPatch}}}};
  if (!merges) c.config["vision_feature_select_strategy"] = "full";
  Tensors& t = c.tensors;
  t.decoder(false);
  t.add(tower + "patch_conv.weight", {kWidth, 3, kPatch, kPatch});
  t.norm(tower + "ln_pre", false);
  for (int i = 0; i < kDepth; ++i) {
    const std::string layer = tower + "transformer.layers." + std::to_string(i) + ".";
    t.norm(layer + "attention_norm", false), t.norm(layer + "ffn_norm", false);
    for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"})
      t.linear(layer + "attention." + name, kWidth, kWidth, false);
    for (const char* name : {"gate_proj", "up_proj"})
      t.linear(layer + "feed_forward." + name, kMlp, kWidth, false);
    t.linear(layer + "feed_forward.down_proj", kWidth, kMlp, false);
  }
  if (merges) {
    t.norm(projector + "norm", false);
    t.linear(projector + "patch_merger.merging_layer", kWidth, 4 * kWidth, false);
  }
  t.linear(projector + "linear_1", kOut, merges ? kWidth : 2 * kWidth, !merges);
  t.linear(projector + "linear_2", kOut, kOut, !merges);
  return c;
}
inline TinyTower pixtral() { return pixtral_named(false); }
inline TinyTower mistral3() { return pixtral_named(true); }

inline TinyTower llava_next() { return llava_in_tiles(false); }
inline TinyTower llava_onevision() { return llava_in_tiles(true); }

inline TinyTower idefics3() {
  const std::string tower = "model.vision_model.";
  TinyTower c{"Idefics3",          {}, {}, tower + "encoder.layers.1.mlp.fc2", kMlp, kWidth,
              3 * kPatch * kPatch, 2};
  Json text = language("LlamaForCausalLM");
  text.erase("rope_scaling");
  c.config = {{"architectures", {"Idefics3ForConditionalGeneration"}},
              {"text_config", text},
              {"scale_factor", 2},
              {"vision_config",
               {{"hidden_size", kWidth},
                {"intermediate_size", kMlp},
                {"num_attention_heads", 2},
                {"num_hidden_layers", kDepth},
                {"image_size", 5 * kPatch + 1},
                {"patch_size", kPatch}}}};
  Tensors& t = c.tensors;
  t.decoder(false, "model.text_model.");
  t.add(tower + "embeddings.patch_embedding.weight", {kWidth, 3, kPatch, kPatch});
  t.add(tower + "embeddings.patch_embedding.bias", {kWidth});
  t.add(tower + "embeddings.position_embedding.weight", {25, kWidth});
  add_clip_layers(t, tower);
  t.norm(tower + "post_layernorm");
  t.linear("model.connector.modality_projection.proj", kOut, 4 * kWidth, false);
  return c;
}

// fused: with the older remote code's names, and one linear for queries, keys and values.
inline TinyTower internvl_named(bool fused) {
  const std::string tower = fused ? "vision_model." : "model.vision_tower.";
  TinyTower c{fused ? "InternVLChat" : "InternVL",
              {},
              {},
              tower + (fused ? "encoder.layers.1.attn.qkv" : "encoder.layer.1.mlp.fc2"),
              fused ? kWidth : kMlp,
              fused ? 3 * kWidth : kWidth,
              3 * kPatch * kPatch,
              2};
  c.tiles = 4;
  Json text = language("Qwen3ForCausalLM");
  text.erase("rope_scaling");
  text["model_type"] = "qwen3";
  text["head_dim"] = kOut / 2;
  const Json vision{
      {"hidden_size", kWidth},       {"intermediate_size", kMlp}, {"num_attention_heads", 2},
      {"num_hidden_layers", kDepth}, {"image_size", 3 * kPatch},  {"patch_size", kPatch},
      {"norm_type", "rms_norm"},     {"qkv_bias", true},          {"qk_normalization", true},
      {"attention_bias", true},      {"use_qk_norm", true}};
  c.config = {{"architectures", {fused ? "InternVLChatModel" : "InternVLForConditionalGeneration"}},
              {fused ? "llm_config" : "text_config", text},
              {"vision_config", vision},
              {"template", "internvl2_5"}};
  Tensors& t = c.tensors;
  const std::string language = fused ? "language_model.model." : "model.language_model.";
  t.decoder(false, language);
  for (const char* name : {"q_norm", "k_norm"})
    t.add(language + "layers.0.self_attn." + name + ".weight", {kOut / 2});
  t.add(tower + (fused ? "embeddings.class_embedding" : "embeddings.cls_token"), {1, 1, kWidth});
  t.add(tower + (fused ? "embeddings.position_embedding" : "embeddings.position_embeddings"),
        {1, 10, kWidth});
  const std::string patches =
      tower + (fused ? "embeddings.patch_embedding" : "embeddings.patch_embeddings.projection");
  t.add(patches + ".weight", {kWidth, 3, kPatch, kPatch});
  t.add(patches + ".bias", {kWidth});
  for (int i = 0; i < kDepth; ++i) {
    const std::string layer =
        tower + (fused ? "encoder.layers." : "encoder.layer.") + std::to_string(i) + ".";
    const std::string attention = layer + (fused ? "attn." : "attention.");
    t.norm(layer + (fused ? "norm1" : "layernorm_before"), false);
    t.norm(layer + (fused ? "norm2" : "layernorm_after"), false);
    t.norm(attention + "q_norm", false);
    t.norm(attention + "k_norm", false);
    t.add(layer + (fused ? "ls1" : "lambda_1"), {kWidth});
    t.add(layer + (fused ? "ls2" : "lambda_2"), {kWidth});
    if (fused)
      t.linear(attention + "qkv", 3 * kWidth, kWidth);
    else
      for (const char* name : {"q_proj", "k_proj", "v_proj"})
        t.linear(attention + name, kWidth, kWidth);
    t.linear(attention + (fused ? "proj" : "projection_layer"), kWidth, kWidth);
    t.linear(layer + "mlp.fc1", kMlp, kWidth);
    t.linear(layer + "mlp.fc2", kWidth, kMlp);
  }
  const std::string projector = "model.multi_modal_projector.";
  t.add((fused ? "mlp1.0" : projector + "layer_norm") + std::string(".weight"), {4 * kWidth});
  t.add((fused ? "mlp1.0" : projector + "layer_norm") + std::string(".bias"), {4 * kWidth});
  t.linear(fused ? "mlp1.1" : projector + "linear_1", kOut, 4 * kWidth);
  t.linear(fused ? "mlp1.3" : projector + "linear_2", kOut, kOut);
  if (fused) t.rename("lm_head.weight", "language_model.lm_head.weight");
  return c;
}
inline TinyTower qwen1_vl() {
  constexpr int kQwenOut = 128;  // the head size of the resampler
  const std::string tower = "transformer.visual.", layer = "transformer.h.0.";
  TinyTower c{"Qwen1VL",
              {{"architectures", {"QWenLMHeadModel"}},
               {"vocab_size", 10},
               {"hidden_size", kQwenOut},
               {"kv_channels", kQwenOut},
               {"intermediate_size", 12},
               {"num_hidden_layers", 1},
               {"num_attention_heads", 1},
               {"seq_length", 64}},
              {},
              tower + "transformer.resblocks.1.mlp.c_fc",
              kWidth,
              kMlp,
              3 * kPatch * kPatch};
  c.square = true;
  c.tokens = 9;
  c.width = kQwenOut;
  c.config["visual"] = {
      {"width", kWidth},        {"layers", kDepth},     {"heads", 2},
      {"mlp_ratio", 1.25},      {"patch_size", kPatch}, {"image_size", 5 * kPatch},
      {"output_dim", kQwenOut}, {"image_start_id", 7},  {"n_queries", c.tokens}};
  Tensors& t = c.tensors;
  for (const char* name : {"transformer.wte.weight", "lm_head.weight"}) t.add(name, {10, kQwenOut});
  for (const char* name :
       {"transformer.ln_f.weight", "transformer.h.0.ln_1.weight", "transformer.h.0.ln_2.weight"})
    t.add(name, {kQwenOut});
  t.linear(layer + "attn.c_attn", 3 * kQwenOut, kQwenOut);
  t.linear(layer + "attn.c_proj", kQwenOut, kQwenOut, false);
  for (const char* name : {"mlp.w1", "mlp.w2"}) t.linear(layer + name, 6, kQwenOut, false);
  t.linear(layer + "mlp.c_proj", kQwenOut, 6, false);
  t.add(tower + "conv1.weight", {kWidth, 3, kPatch, kPatch});
  t.add(tower + "positional_embedding", {256, kWidth});
  t.norm(tower + "ln_pre");
  for (int i = 0; i < kDepth; ++i) {
    const std::string block = tower + "transformer.resblocks." + std::to_string(i) + ".";
    t.norm(block + "ln_1"), t.norm(block + "ln_2");
    t.linear(block + "attn.in_proj", 3 * kWidth, kWidth);
    t.linear(block + "attn.out_proj", kWidth, kWidth);
    t.linear(block + "mlp.c_fc", kMlp, kWidth);
    t.linear(block + "mlp.c_proj", kWidth, kMlp);
  }
  const std::string pool = tower + "attn_pool.";
  for (const char* name : {"query", "pos_embed"}) t.add(pool + name, {c.tokens, kQwenOut});
  t.linear(pool + "kv_proj", kQwenOut, kWidth, false);
  t.add(pool + "attn.in_proj_weight", {3 * kQwenOut, kQwenOut});
  t.add(pool + "attn.in_proj_bias", {3 * kQwenOut});
  t.linear(pool + "attn.out_proj", kQwenOut, kQwenOut);
  for (const std::string& name : {pool + "ln_q", pool + "ln_kv", tower + "ln_post"}) {
    t.add(name + ".weight", {kQwenOut});
    t.add(name + ".bias", {kQwenOut});
  }
  t.add(tower + "proj", {kQwenOut, kQwenOut});
  return c;
}
inline TinyTower internvl() { return internvl_named(false); }
inline TinyTower internvl_chat() { return internvl_named(true); }

}  // namespace valora::models::testing
