#include "models/families/families.h"

#include <algorithm>
#include <bit>

#include "models/families/causal_lm.h"
#include "models/quantised/config.h"
#include "models/towers/qwen1_vision.h"
#include "text/chat/chat_formats.h"

namespace valora::models {
namespace {

constexpr char kQwen[] = "QWenLMHeadModel";
constexpr char kQwenDecoder[] = "transformer.", kQwenTower[] = "transformer.visual.",
               kQwenHead[] = "lm_head";
constexpr DecoderNames kQwenNames{.embedding = "wte",
                                  .norm = "ln_f",
                                  .layers = "h.",
                                  .input_norm = "ln_1",
                                  .inner_norm = "ln_2",
                                  .qkv = "attn.c_attn",
                                  .o = "attn.c_proj",
                                  .gate = "mlp.w2",
                                  .up = "mlp.w1",
                                  .down = "mlp.c_proj"};
constexpr int64_t kMaxLogPositions = 32767;  // the length of the reference's table of logarithms

void refuse_qwen1_settings(const ConfigReader& config) {
  config.refuse_changed_layers();
  if (config.number("rotary_pct", 1) != 1)
    config.refuse("rope on only a part of the head (\"rotary_pct\") is not supported");
  if (!config.flag("scale_attn_weights", true))
    config.refuse("\"scale_attn_weights\": false is not supported");
  if (config.flag("use_cache_quantization", false))
    config.refuse("\"use_cache_quantization\" is not supported; --kv-cache-dtype int8 is");
}

// Up to "seq_length" positions, as in Llama. A longer prompt gets a larger theta, and queries
// beyond that length are scaled.
void read_qwen1_positions(const ConfigReader& config, DecoderConfig& c) {
  const int64_t trained = config.integer("seq_length");
  c.rotary.theta = config.number("rotary_emb_base", 10000);
  if (!(c.rotary.theta > 1)) config.refuse("\"rotary_emb_base\" must be above 1");
  c.max_positions = config.integer("max_position_embeddings", 8192);
  if (config.flag("use_logn_attn", true)) {
    if (trained < 2) config.refuse("\"seq_length\" must be above 1");
    c.rotary.log_beyond = trained;
    c.max_positions = std::min(c.max_positions, kMaxLogPositions);
  }
  if (config.flag("use_dynamic_ntk", true)) {
    c.rotary.change = {.beyond = trained, .each = true, .of_prompt = true};
    const auto doublings = std::bit_width(static_cast<uint64_t>((c.max_positions - 1) / trained));
    c.rotary.doubling = DoublingScaling{trained, static_cast<int64_t>(doublings)};
  }
  c.rotary.max_positions = c.max_positions;
}

LayerConfig read_qwen1_layer(const ConfigReader& config, int64_t hidden) {
  LayerConfig layer;
  layer.heads = layer.kv_heads = config.integer("num_attention_heads", 32);
  layer.head_dim = config.integer("kv_channels", 128);
  if (layer.heads * layer.head_dim != hidden)
    config.refuse("\"hidden_size\" is not \"num_attention_heads\" times \"kv_channels\"");
  if (layer.head_dim % 2 != 0 || layer.head_dim <= 2)
    config.refuse("\"kv_channels\" must be even and above 2");
  const int64_t both = config.integer("intermediate_size", 22016);  // gate and up together
  layer.intermediate = both / 2;
  if (layer.intermediate < 1) config.refuse("\"intermediate_size\" must be above 1");
  layer.norm_eps = config.number("layer_norm_epsilon", 1e-6);
  layer.qkv = Qkv::kSideBySide;
  layer.qkv_bias = true;
  layer.o_bias = layer.mlp_bias = !config.flag("no_bias", true);
  return layer;
}

DecoderConfig read_qwen1_decoder(const ConfigReader& config) {
  refuse_qwen1_settings(config);
  DecoderConfig c;
  c.names = kQwenNames;
  c.vocab = config.integer("vocab_size", 151936);
  c.hidden = config.at_most("hidden_size", int64_t{1} << 24, 4096);
  const LayerConfig layer = read_qwen1_layer(config, c.hidden);
  c.norm_eps = layer.norm_eps;
  c.tied_embeddings = config.flag("tie_word_embeddings", false);
  read_qwen1_positions(config, c);
  c.layers.assign(static_cast<size_t>(config.at_most("num_hidden_layers", kMaxLayers, 32)), layer);
  (void)read_quantised_config(config);  // refuses unsupported formats
  return c;
}

struct QwenVlConfig {
  DecoderConfig decoder;
  Qwen1VisionConfig vision;
};

QwenVlConfig read_qwen_vl(const ConfigReader& config) {
  const ConfigReader visual = config.child("visual");
  QwenVlConfig c{read_qwen1_decoder(config), read_qwen1_vision_config(visual)};
  if (c.vision.resampler.width != c.decoder.hidden)
    visual.refuse("\"output_dim\" is not the decoder's \"hidden_size\"");
  return c;
}

ModelSpec qwen1_spec(const DecoderConfig& decoder, const Qwen1VisionConfig* vision) {
  ModelSpec spec = decoder_spec(decoder, kQwen);
  std::vector<adapters::Module> modules;
  add_decoder_modules(decoder, kQwenDecoder, modules);
  if (vision) add_qwen1_vision_modules(*vision, kQwenTower, modules);
  modules.push_back(head_module(decoder, kQwenHead));
  spec.modules = adapters::ModuleTable(std::move(modules), {}, decoder.hidden);
  return spec;
}

// <img>, </img> and <imgpad> have adjacent ids.
ModelSpec qwen_vl_spec(const ConfigReader& config) {
  const QwenVlConfig c = read_qwen_vl(config);
  ModelSpec spec = qwen1_spec(c.decoder, &c.vision);
  spec.image_token = static_cast<int32_t>(config.child("visual").integer("image_start_id") + 2);
  return spec;
}

Result<std::shared_ptr<const media::Processor>> qwen_vl_processor(const ConfigReader& config,
                                                                  const media::ProcessorFiles&) {
  const Qwen1VisionConfig c = read_qwen_vl(config).vision;
  return media::make_square_processor({.image_size = static_cast<int>(c.image),
                                       .patch_size = static_cast<int>(c.patch),
                                       .tokens = static_cast<int>(c.resampler.queries)});
}

}  // namespace

Family qwen1_family() {
  return {
      .architecture = kQwen,
      .model_type = "qwen",
      .spec =
          [](const ConfigReader& config) {
            return qwen1_spec(read_qwen1_decoder(config), nullptr);
          },
      .build = [](const ConfigReader& config, Weights& weights,
                  at::Device device) -> std::unique_ptr<Model> {
        const DecoderConfig c = read_qwen1_decoder(config);
        return make_vision_language_model(qwen1_spec(c, nullptr), nullptr, c, kQwenDecoder,
                                          kQwenHead, weights, device);
      },
      .positions = causal_lm_positions,
      .chat_format = [](const text::Tokenizer&,
                        const ConfigReader&) { return text::make_chatml(); },
      .end_of_turn = "<|im_end|>",
      .plain_texts = true,
  };
}

Family qwen1_vl_family() {
  return {
      .architecture = kQwen,
      .model_type = "qwen",
      .spec = qwen_vl_spec,
      .build = [](const ConfigReader& config, Weights& weights,
                  at::Device device) -> std::unique_ptr<Model> {
        const QwenVlConfig c = read_qwen_vl(config);
        ModelSpec spec = qwen_vl_spec(config);
        auto tower =
            std::make_unique<Qwen1VisionTower>(weights, spec.modules, kQwenTower, c.vision, device);
        return make_vision_language_model(std::move(spec), std::move(tower), c.decoder,
                                          kQwenDecoder, kQwenHead, weights, device);
      },
      .positions = causal_lm_positions,
      .chat_format = [](const text::Tokenizer&,
                        const ConfigReader&) { return text::make_qwen_vl_chat(); },
      .image_placeholder = "<img><imgpad></img>\n",
      .end_of_turn = "<|im_end|>",
      .processor = qwen_vl_processor,
      .settings_in_config = true,
      .boxes = BoxNotation{.scale = 1000, .style = BoxStyle::kMarks},
      .plain_texts = true,
      .takes =
          [](const ConfigReader& config) {
            return config.json().contains("visual") && !config.json().at("visual").is_null();
          },
  };
}

}  // namespace valora::models
