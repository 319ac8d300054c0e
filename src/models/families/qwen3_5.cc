#include "models/families/families.h"

#include <algorithm>
#include <type_traits>

#include "models/decoder/decoder_config.h"
#include "models/families/causal_lm.h"
#include "models/families/qwen_vl_family.h"
#include "models/towers/qwen3_vl_vision.h"
#include "text/chat/chat_formats.h"

namespace valora::models {
namespace {

// The two kinds: with an MLP in each layer, and with a mixture of experts.
struct Dense {
  static constexpr char kText[] = "Qwen3_5ForCausalLM";
  static constexpr char kVisual[] = "Qwen3_5ForConditionalGeneration";
  static constexpr char kModelType[] = "qwen3_5";
  static constexpr char kTextType[] = "qwen3_5_text";
  static constexpr DecoderDefaults kDefaults{.vocab = 248320,
                                             .hidden = 4096,
                                             .intermediate = 12288,
                                             .layers = 32,
                                             .heads = 16,
                                             .kv_heads = 4};
};
struct Sparse {
  static constexpr char kText[] = "Qwen3_5MoeForCausalLM";
  static constexpr char kVisual[] = "Qwen3_5MoeForConditionalGeneration";
  static constexpr char kModelType[] = "qwen3_5_moe";
  static constexpr char kTextType[] = "qwen3_5_moe_text";
  static constexpr DecoderDefaults kDefaults{.vocab = 248320,
                                             .hidden = 2048,
                                             .intermediate = 1,  // no layer has an MLP
                                             .layers = 40,
                                             .heads = 16,
                                             .kv_heads = 2};
};

constexpr int64_t kMostTaps = 16;           // limit of the kernels
constexpr int64_t kMostStateDim = 1 << 12;  // bounds what is computed before a tensor is checked

StateSpec read_state(const ConfigReader& text) {
  StateSpec s;
  s.taps = text.at_most("linear_conv_kernel_dim", kMostTaps, 4);
  s.key_heads = text.at_most("linear_num_key_heads", kMostStateDim, 16);
  s.value_heads = text.at_most("linear_num_value_heads", kMostStateDim, 32);
  s.key_dim = text.at_most("linear_key_head_dim", kMostStateDim, 128);
  s.value_dim = text.at_most("linear_value_head_dim", kMostStateDim, 128);
  if (s.value_heads % s.key_heads != 0)
    text.refuse("\"linear_num_value_heads\" is not a multiple of \"linear_num_key_heads\"");
  return s;
}

// One entry per layer: true if it has a delta rule.
std::vector<bool> read_layer_types(const ConfigReader& text, size_t layers) {
  const std::vector<std::string> types = text.texts("layer_types");
  std::vector<bool> delta;
  if (types.empty()) {
    const auto interval = static_cast<size_t>(text.integer("full_attention_interval", 4));
    for (size_t i = 0; i < layers; ++i) delta.push_back((i + 1) % interval != 0);
  }
  for (const std::string& type : types) {
    if (type != "linear_attention" && type != "full_attention")
      text.refuse("a layer of type \"" + type + "\" is not supported");
    delta.push_back(type == "linear_attention");
  }
  if (delta.size() != layers)
    text.refuse("\"layer_types\" does not have one type for each of \"num_hidden_layers\"");
  if (std::ranges::find(delta, false) == delta.end()) text.refuse("no layer has full attention");
  return delta;
}

// The default [11, 11, 10], shortened if there are fewer frequencies: height and width alternate
// with time, which gets the rest.
std::vector<int64_t> usual_sections(int64_t frequencies) {
  const int64_t height = std::min<int64_t>(11, (frequencies + 1) / 3),
                width = std::min<int64_t>(10, frequencies / 3);
  return {frequencies - height - width, height, width};
}

template <typename Kind>
DecoderConfig read_qwen3_5_text(const ConfigReader& text, const ConfigReader& top) {
  DecoderDefaults defaults = Kind::kDefaults;
  defaults.head_dim = 256;
  defaults.qk_norm = true;
  defaults.windows = {Windows::kOwnTypes};
  defaults.rotary_share = 0.25;
  defaults.qkv_bias = defaults.o_bias = text.flag("attention_bias", false);
  DecoderConfig c = read_decoder_config(text, top, defaults);
  if (std::is_same_v<Kind, Sparse>)
    read_mixtures(text,
                  {.experts = 256,
                   .chosen = 8,
                   .width = 512,
                   .shared_width = 512,
                   .always_normed = true,
                   .every_layer = true},
                  c);
  c.norm_offset = 1;
  c.rotary.interleaved = true;  // transformers ignores "mrope_interleaved"
  StateSpec state = read_state(text);
  const std::vector<bool> delta = read_layer_types(text, c.layers.size());
  state.layers = std::ranges::count(delta, true);
  for (size_t i = 0; i < c.layers.size(); ++i) {
    c.layers[i].norm_offset = 1;
    c.layers[i].output_gate = true;
    if (delta[i]) c.layers[i].delta = state;
  }
  return c;
}

template <typename Kind>
DecoderConfig read_qwen3_5_decoder(const ConfigReader& config) {
  DecoderConfig c = read_qwen3_5_text<Kind>(config.nested_or_self("text_config"), config);
  if (c.rotary.sections.empty()) c.rotary.sections = usual_sections(c.rotary.dim / 2);
  return c;
}

// A text-only model: a token's position is the same on all axes.
template <typename Kind>
DecoderConfig read_qwen3_5_causal(const ConfigReader& config) {
  DecoderConfig c = read_qwen3_5_text<Kind>(config.nested_or_self("text_config"), config);
  c.rotary.sections.clear();
  return c;
}

// Qwen3-VL's tower, without visual embeddings for the decoder's layers.
template <typename Kind>
class Qwen35VisionTower : public Qwen3VlVisionTower {
 public:
  static constexpr const char* kArchitecture = Kind::kVisual;
  static constexpr const char* kModelType = Kind::kModelType;
  static Config read_config(const ConfigReader& vision) {
    return Qwen3VlVisionTower::read_config(vision, false);
  }
  using Qwen3VlVisionTower::Qwen3VlVisionTower;
};

template <typename Kind>
ModelSpec qwen3_5_spec(const ConfigReader& config) {
  ModelSpec spec = qwen_vl_spec<Qwen35VisionTower<Kind>, read_qwen3_5_decoder<Kind>>(config);
  spec.image_token = static_cast<int32_t>(config.integer("image_token_id", 248056));
  spec.video_token = static_cast<int32_t>(config.integer("video_token_id", 248057));
  spec.frame_marks = {static_cast<int32_t>(config.integer("vision_start_token_id", 248053)),
                      static_cast<int32_t>(config.integer("vision_end_token_id", 248054))};
  return spec;
}

template <typename Kind>
ModelSpec qwen3_5_text_spec(const ConfigReader& config) {
  ModelSpec spec = causal_lm_spec(read_qwen3_5_causal<Kind>(config), Kind::kText);
  // A folder that includes a vision tower is loaded without it.
  spec.aliases = {{"model.language_model.", "model."}};
  spec.modules = adapters::ModuleTable(spec.modules.modules(), spec.aliases, spec.hidden);
  return spec;
}

std::unique_ptr<text::ChatFormat> qwen3_5_chat(const text::Tokenizer&, const ConfigReader&) {
  return text::make_qwen3_chat("<think>\n");
}

template <typename Kind>
Family visual_family() {
  using Tower = Qwen35VisionTower<Kind>;
  Family family = qwen_vl_family<Tower, read_qwen3_5_decoder<Kind>>();
  family.spec = qwen3_5_spec<Kind>;
  family.chat_format = qwen3_5_chat;
  family.build = [](const ConfigReader& config, Weights& weights,
                    at::Device device) -> std::unique_ptr<Model> {
    weights.leave_out("mtp.");
    return make_qwen_vl_model<Tower, read_qwen3_5_decoder<Kind>>(qwen3_5_spec<Kind>(config), config,
                                                                 weights, device);
  };
  family.processor = read_qwen3_vl_processor<Tower>;
  family.boxes = BoxNotation{.scale = 1000, .style = BoxStyle::kJson};
  return family;
}

template <typename Kind>
Family text_family() {
  return {
      .architecture = Kind::kText,
      .model_type = Kind::kTextType,
      .spec = qwen3_5_text_spec<Kind>,
      .build =
          [](const ConfigReader& config, Weights& weights, at::Device device) {
            for (const char* prefix : {"mtp.", "model.visual."}) weights.leave_out(prefix);
            return make_causal_lm(read_qwen3_5_causal<Kind>(config),
                                  qwen3_5_text_spec<Kind>(config), weights, device);
          },
      .positions = causal_lm_positions,
      .chat_format = qwen3_5_chat,
  };
}

}  // namespace

Family qwen3_5_family() { return visual_family<Dense>(); }
Family qwen3_5_text_family() { return text_family<Dense>(); }
Family qwen3_5_moe_family() { return visual_family<Sparse>(); }
Family qwen3_5_moe_text_family() { return text_family<Sparse>(); }

}  // namespace valora::models
