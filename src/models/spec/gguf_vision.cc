#include "models/spec/gguf_vision.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text/strings.h"
#include "base/text/visible_text.h"

namespace valora::models {
namespace {

constexpr char kVision[] = "clip.vision.";
constexpr int64_t kMostVisionSize = 1 << 24;

// Keys after "clip." that are read or have no effect on answers.
constexpr std::array kVisionKeys = {
    "projector_type", "has_vision_encoder", "has_llava_projector", "has_qwen2vl_merger", "use_gelu",
    "use_silu", "vision.projector_type", "vision.image_size", "vision.image_min_pixels",
    "vision.image_max_pixels", "vision.preproc_image_size", "vision.preproc_min_tiles",
    "vision.preproc_max_tiles", "vision.patch_size", "vision.embedding_length",
    "vision.feed_forward_length", "vision.projection_dim", "vision.block_count",
    "vision.attention.head_count", "vision.attention.layer_norm_epsilon", "vision.image_mean",
    "vision.image_std", "vision.spatial_merge_size", "vision.projector.scale_factor",
    "vision.n_wa_pattern", "vision.window_size", "vision.is_deepstack_layers",
    "vision.feature_layer",
    // How llama.cpp itself prepares LLaVA's pictures.
    "vision.image_aspect_ratio", "vision.image_crop_resolution", "vision.image_split_resolution",
    "vision.mm_projector_type"};
// Keys that are supported only as false, 0 or "flat".
constexpr std::array kNeutralVisionKeys = {"has_text_encoder", "has_audio_encoder",
                                           "vision.mm_patch_merge_type"};

struct KindEntry {
  const char* projector;  // clip.projector_type
  GgufVisionKind kind;
  const char* output;                  // the projector's last tensor
  size_t output_axis;                  // of which this axis has the language model's size
  std::vector<const char*> languages;  // general.architecture
};
const std::vector<KindEntry>& kind_entries() {
  static const std::vector<KindEntry> all{
      {"qwen2vl_merger", GgufVisionKind::kQwen2Vl, "mm.2.weight", 0, {"qwen2vl"}},
      {"qwen2.5vl_merger", GgufVisionKind::kQwen25Vl, "mm.2.weight", 0, {"qwen2vl"}},
      {"qwen3vl_merger", GgufVisionKind::kQwen3Vl, "mm.2.weight", 0, {"qwen3vl"}},
      {"idefics3", GgufVisionKind::kIdefics3, "mm.model.fc.weight", 0, {"llama"}},
      {"gemma3", GgufVisionKind::kGemma3, "mm.input_projection.weight", 1, {"gemma3"}},
      {"mlp", GgufVisionKind::kLlava, "mm.2.weight", 0, {"llama"}},
      {"internvl",
       GgufVisionKind::kInternVl,
       "mm.model.mlp.3.weight",
       0,
       {"qwen2", "qwen3", "llama"}},
      {"pixtral", GgufVisionKind::kPixtral, "mm.2.weight", 0, {"llama", "mistral3"}}};
  return all;
}

class VisionConfigReader {
 public:
  VisionConfigReader(const GgufModel& model, const KindEntry& entry, Json text)
      : file_(*model.vision),
        language_(*model.language),
        data_(model.vision->metadata()),
        entry_(entry),
        text_(std::move(text)) {}

  Result<Json> read() {
    VALORA_CHECK(check_keys());
    VALORA_CHECK(check_fit());
    VALORA_CHECK(read_sizes());
    // Top-level settings of the text, which the engine looks for there, too.
    config_["tie_word_embeddings"] = text_["tie_word_embeddings"];
    if (text_.contains("eos_token_id")) config_["eos_token_id"] = text_["eos_token_id"];
    text_.erase("architectures");
    VALORA_CHECK(read_kind());
    config_["text_config"] = std::move(text_);
    config_["vision_config"] = std::move(vision_);
    return std::move(config_);
  }

 private:
  Error is(const std::string& what) const {
    return unprocessable(file_.path() + " " + what, file_.path());
  }
  bool has(const std::string& tensor) const { return file_.find(tensor) != nullptr; }

  // The sizes of a tensor with this many dimensions.
  Result<std::vector<int64_t>> shape(const std::string& tensor, size_t dimensions) const {
    const GgufTensor* const found = file_.find(tensor);
    if (!found) return is("has no tensor " + tensor);
    if (found->shape.size() != dimensions)
      return is(fmt::format(": tensor {} has shape [{}], not {} dimensions", tensor,
                            fmt::join(found->shape, ", "), dimensions));
    return found->shape;
  }

  Result<int64_t> size(const char* key, std::optional<int64_t> fallback = {}) const {
    VALORA_TRY(value, data_.integer(kVision + std::string(key), fallback));
    if (value < 1 || value > kMostVisionSize)
      return data_.wrong(kVision + std::string(key), "is out of range");
    return value;
  }

  Status check_keys() const {
    constexpr std::string_view kPrefix = "clip.";
    for (const std::string& name : data_.keys()) {
      if (!name.starts_with(kPrefix)) continue;
      const std::string own = name.substr(kPrefix.size());
      if (std::ranges::find(kVisionKeys, own) != kVisionKeys.end()) continue;
      if (std::ranges::find(kNeutralVisionKeys, own) == kNeutralVisionKeys.end())
        return data_.wrong(name, "is not supported");
      const auto flag = data_.flag(name, false);
      const auto text = data_.text(name, "flat");
      if (!(flag.ok() && !*flag) && !(text.ok() && *text == "flat"))
        return data_.wrong(name, "is not supported with this value");
    }
    return {};
  }

  // The projector must give embeddings of this language model.
  Status check_fit() const {
    VALORA_TRY(architecture, language_.metadata().text("general.architecture"));
    const auto& known = entry_.languages;
    if (std::ranges::find(known, architecture) == known.end())
      return is(
          fmt::format("has the projector {}, which is for language models of the architecture "
                      "{}, and {} is {}: give the model's own with --mmproj FILE, or --mmproj "
                      "none for text alone",
                      entry_.projector, fmt::join(known, " or "), language_.path(), architecture));
    VALORA_TRY(output, shape(entry_.output, 2));
    const int64_t out = output[entry_.output_axis], hidden = text_["hidden_size"].get<int64_t>();
    if (out == hidden) return {};
    return is(
        fmt::format("is the vision part of another model: it gives embeddings of {} values, "
                    "and those of {} have {}; give the model's own with --mmproj FILE, or "
                    "--mmproj none for text alone",
                    out, language_.path(), hidden));
  }

  Status read_sizes() {
    VALORA_TRY(width, size("embedding_length"));
    VALORA_TRY(depth, size("block_count"));
    VALORA_TRY(heads, size("attention.head_count"));
    VALORA_TRY(patch, size("patch_size"));
    VALORA_TRY(image, size("image_size"));
    // feed_forward_length is 0 in some files.
    VALORA_TRY(inner, shape(gguf_swaps_feed_forward(file_) ? "v.blk.0.ffn_down.weight"
                                                           : "v.blk.0.ffn_up.weight",
                            2));
    VALORA_TRY(eps, data_.number(std::string(kVision) + "attention.layer_norm_epsilon", 1e-6));
    width_ = width, depth_ = depth, heads_ = heads, patch_ = patch, image_ = image;
    inner_ = inner[0], eps_ = eps;
    if (width % heads != 0)
      return data_.wrong(std::string(kVision) + "attention.head_count",
                         "does not divide embedding_length");
    return {};
  }

  Status read_kind() {
    switch (entry_.kind) {
      case GgufVisionKind::kQwen2Vl: return read_qwen2_vl();
      case GgufVisionKind::kQwen25Vl: return read_qwen2_5_vl();
      case GgufVisionKind::kQwen3Vl: return read_qwen3_vl();
      case GgufVisionKind::kIdefics3: return read_idefics3();
      case GgufVisionKind::kGemma3: return read_gemma3();
      case GgufVisionKind::kLlava: return read_llava();
      case GgufVisionKind::kInternVl: return read_internvl();
      case GgufVisionKind::kPixtral: return read_pixtral();
    }
    return {};
  }

  void name_family(const char* architecture, const char* type) {
    config_["architectures"] = {architecture};
    config_["model_type"] = type;
  }

  // The id of a token by its text; absent if the vocabulary lacks it.
  Result<std::optional<int64_t>> find_token(std::string_view text) const {
    VALORA_TRY(tokens, language_.metadata().texts("tokenizer.ggml.tokens"));
    const auto found = std::ranges::find(tokens, text);
    if (found == tokens.end()) return std::optional<int64_t>();
    return std::optional<int64_t>(found - tokens.begin());
  }
  Status set_token(const char* key, const std::string& text) {
    VALORA_TRY(id, find_token(text));
    if (!id)
      return unprocessable(
          language_.path() + " has no token " + text + ", which the prompts of pictures contain",
          language_.path());
    config_[key] = *id;
    return {};
  }
  // A token that the converter leaves out, because it has no embedding, comes after all others.
  Status set_token_or_add(const char* key, const std::string& text) {
    VALORA_TRY(id, find_token(text));
    if (id) {
      config_[key] = *id;
      return {};
    }
    VALORA_TRY(tokens, language_.metadata().texts("tokenizer.ggml.tokens"));
    config_[key] = tokens.size();
    config_[kAddedToken] = text;
    return {};
  }

  // gelu: the family's own form of it.
  Result<std::string> activation(const char* gelu, const char* neither) const {
    VALORA_TRY(is_gelu, data_.flag("clip.use_gelu", false));
    VALORA_TRY(is_silu, data_.flag("clip.use_silu", false));
    if (is_gelu && is_silu) return data_.wrong("clip.use_silu", "and \"clip.use_gelu\" are true");
    return std::string(is_gelu ? gelu : is_silu ? "silu" : neither);
  }

  // What transformers' configuration of CLIP's and SigLIP's towers has.
  Status read_clip_like(const char* type, const char* gelu) {
    VALORA_TRY(act, activation(gelu, "quick_gelu"));
    vision_ = {{"model_type", type},
               {"hidden_size", width_},
               {"intermediate_size", inner_},
               {"num_hidden_layers", depth_},
               {"num_attention_heads", heads_},
               {"image_size", image_},
               {"patch_size", patch_},
               {"layer_norm_eps", eps_},
               {"hidden_act", act}};
    return {};
  }

  // ---- Qwen ----

  Status read_qwen_text(const char* type) {
    VALORA_TRY(architecture, language_.metadata().text("general.architecture"));
    const std::string key = architecture + ".rope.dimension_sections";
    VALORA_TRY(sections, language_.metadata().numbers(key));
    if (sections.size() < 3) return language_.metadata().wrong(key, "is missing");
    if (!text_.contains("rope_scaling")) text_["rope_scaling"] = {{"rope_type", "default"}};
    text_["rope_scaling"]["mrope_section"] = Json::array();
    for (size_t i = 0; i < 3; ++i) {
      if (!(sections[i] >= 0 && sections[i] <= 1 << 14))
        return language_.metadata().wrong(key, "is out of range");
      text_["rope_scaling"]["mrope_section"].push_back(static_cast<int64_t>(sections[i]));
    }
    text_["model_type"] = type;
    VALORA_CHECK(set_token("image_token_id", "<|image_pad|>"));
    VALORA_CHECK(set_token("video_token_id", "<|video_pad|>"));
    VALORA_CHECK(set_token("vision_start_token_id", "<|vision_start|>"));
    return set_token("vision_end_token_id", "<|vision_end|>");
  }

  // Sizes that the towers of Qwen2-VL and later share.
  Status read_qwen_tower(const char* gelu, const char* neither) {
    VALORA_TRY(act, activation(gelu, neither));
    VALORA_TRY(merge, size("spatial_merge_size", 2));
    vision_ = {{"depth", depth_},          {"num_heads", heads_},
               {"patch_size", patch_},     {"spatial_merge_size", merge},
               {"temporal_patch_size", 2}, {"hidden_act", act}};
    return {};
  }

  Status read_qwen2_vl() {
    name_family("Qwen2VLForConditionalGeneration", "qwen2_vl");
    VALORA_CHECK(read_qwen_text("qwen2_vl_text"));
    VALORA_CHECK(read_qwen_tower("gelu", "quick_gelu"));
    vision_["embed_dim"] = width_;
    vision_["hidden_size"] = text_["hidden_size"];
    vision_["mlp_ratio"] = static_cast<double>(inner_) / static_cast<double>(width_);
    return {};
  }

  Status read_qwen2_5_vl() {
    name_family("Qwen2_5_VLForConditionalGeneration", "qwen2_5_vl");
    VALORA_CHECK(read_qwen_text("qwen2_5_vl_text"));
    VALORA_CHECK(read_qwen_tower("gelu", "silu"));
    VALORA_TRY(window, size("window_size", 112));
    VALORA_TRY(pattern, size("n_wa_pattern"));
    vision_["hidden_size"] = width_;
    vision_["intermediate_size"] = inner_;
    vision_["out_hidden_size"] = text_["hidden_size"];
    vision_["window_size"] = window;
    vision_["tokens_per_second"] = 2;
    vision_["fullatt_block_indexes"] = Json::array();
    for (int64_t block = pattern - 1; block < std::min<int64_t>(depth_, 1 << 12); block += pattern)
      vision_["fullatt_block_indexes"].push_back(block);
    return {};
  }

  Status read_qwen3_vl() {
    name_family("Qwen3VLForConditionalGeneration", "qwen3_vl");
    VALORA_CHECK(read_qwen_text("qwen3_vl_text"));
    VALORA_CHECK(read_qwen_tower("gelu_pytorch_tanh", "gelu_pytorch_tanh"));
    VALORA_TRY(positions, shape("v.position_embd.weight", 2));
    vision_["hidden_size"] = width_;
    vision_["intermediate_size"] = inner_;
    vision_["out_hidden_size"] = text_["hidden_size"];
    vision_["num_position_embeddings"] = positions[0];
    VALORA_TRY(levels, data_.numbers(std::string(kVision) + "is_deepstack_layers"));
    if (levels.size() != static_cast<size_t>(depth_))
      return data_.wrong(std::string(kVision) + "is_deepstack_layers",
                         "must have one value for each block");
    vision_["deepstack_visual_indexes"] = Json::array();
    for (size_t i = 0; i < levels.size(); ++i)
      if (levels[i] != 0) vision_["deepstack_visual_indexes"].push_back(i);
    return {};
  }

  // ---- others ----

  Status read_idefics3() {
    name_family("Idefics3ForConditionalGeneration", "idefics3");
    VALORA_CHECK(read_clip_like("idefics3_vision", "gelu_pytorch_tanh"));
    VALORA_TRY(scale, size("projector.scale_factor"));
    config_["scale_factor"] = scale;
    return set_token("image_token_id", "<image>");
  }

  Status read_gemma3() {
    name_family("Gemma3ForConditionalGeneration", "gemma3");
    VALORA_CHECK(read_clip_like("siglip_vision_model", "gelu_pytorch_tanh"));
    vision_["vision_use_head"] = false;
    VALORA_TRY(scale, size("projector.scale_factor", 4));
    const int64_t side = image_ / patch_ / scale;
    config_["mm_tokens_per_image"] = side * side;
    return set_token_or_add("image_token_index", "<image_soft_token>");
  }

  Status read_llava() {
    name_family("LlavaForConditionalGeneration", "llava");
    VALORA_CHECK(read_clip_like("clip_vision_model", "gelu"));
    VALORA_TRY(layers, data_.numbers(std::string(kVision) + "feature_layer"));
    // The file ends with the block whose output is used; the published models have one more, which
    // adapters may change without effect.
    if (layers.empty()) layers.push_back(static_cast<double>(depth_));
    vision_["num_hidden_layers"] = depth_ + 1;
    config_["vision_feature_layer"] = Json::array();
    for (const double layer : layers) {
      if (!(layer >= 0 && layer <= static_cast<double>(depth_)))
        return data_.wrong(std::string(kVision) + "feature_layer",
                           "names a block that the file does not have");
      config_["vision_feature_layer"].push_back(static_cast<int64_t>(layer));
    }
    config_["vision_feature_select_strategy"] = "default";
    config_["multimodal_projector_bias"] = has("mm.0.bias");
    return set_token_or_add("image_token_id", "<image>");
  }

  Status read_internvl() {
    name_family("InternVLForConditionalGeneration", "internvl");
    VALORA_CHECK(read_clip_like("internvl_vision", "gelu"));
    vision_["image_size"] = {image_, image_};
    vision_["patch_size"] = {patch_, patch_};
    vision_["norm_type"] = has("v.blk.0.ln1.bias") ? "layer_norm" : "rms_norm";
    vision_["attention_bias"] = has("v.blk.0.attn_q.bias");
    vision_["use_qk_norm"] = has("v.blk.0.attn_q_norm.weight");
    VALORA_TRY(scale, size("projector.scale_factor", 2));
    config_["downsample_ratio"] = 1.0 / static_cast<double>(scale);
    return set_token("image_token_id", "<IMG_CONTEXT>");
  }

  Status read_pixtral() {
    const bool merges = has("mm.patch_merger.weight");
    if (merges)
      name_family("Mistral3ForConditionalGeneration", "mistral3");
    else
      name_family("LlavaForConditionalGeneration", "llava");
    text_["model_type"] = "mistral";
    text_["sliding_window"] = nullptr;
    VALORA_CHECK(read_clip_like("pixtral", "gelu"));
    vision_["head_dim"] = width_ / heads_;
    vision_["rope_theta"] = 10000.0;
    VALORA_TRY(merge, size("spatial_merge_size", 1));
    if (merges) config_["spatial_merge_size"] = merge;
    config_["vision_feature_layer"] = -1;
    config_["vision_feature_select_strategy"] = "full";
    config_["multimodal_projector_bias"] = has("mm.1.bias");
    return set_token("image_token_id", "[IMG]");
  }

  const Gguf &file_, &language_;
  const GgufMetadata& data_;
  const KindEntry& entry_;
  Json text_, vision_ = Json::object(), config_ = Json::object();
  int64_t width_ = 0, depth_ = 0, heads_ = 0, patch_ = 0, image_ = 0, inner_ = 0;
  double eps_ = 0;
};

Result<const KindEntry*> entry_of(const Gguf& vision) {
  const GgufMetadata& data = vision.metadata();
  VALORA_TRY(architecture, data.text("general.architecture"));
  if (architecture != "clip")
    return data.wrong("general.architecture",
                      "is \"" + shortened(architecture, 40) +
                          "\", not clip: the file is not the vision part of a model (mmproj)");
  VALORA_TRY(of_vision, data.text(std::string(kVision) + "projector_type", ""));
  // As in llama.cpp, the shorter key precedes.
  VALORA_TRY(projector,
             data.text("clip.projector_type", of_vision.empty() ? "mlp" : std::string(of_vision)));
  const auto& all = kind_entries();
  const auto found = std::ranges::find_if(
      all, [&](const KindEntry& entry) { return projector == entry.projector; });
  if (found != all.end()) return &*found;
  std::vector<const char*> known;
  for (const KindEntry& entry : all) known.push_back(entry.projector);
  return data.wrong("clip.projector_type",
                    fmt::format("is \"{}\", which is not supported, only {}; --mmproj none serves "
                                "the language model alone",
                                shortened(projector, 40), fmt::join(known, ", ")));
}

}  // namespace

Result<GgufVisionKind> gguf_vision_kind(const Gguf& vision) {
  VALORA_TRY(entry, entry_of(vision));
  return entry->kind;
}

bool gguf_swaps_feed_forward(const Gguf& vision) {
  const GgufTensor* const down = vision.find("v.blk.0.ffn_down.weight");
  const auto width = vision.metadata().integer(std::string(kVision) + "embedding_length", 0);
  return down && down->shape.size() == 2 && width.ok() && down->shape[1] == *width &&
         down->shape[0] != *width;
}

Result<Json> gguf_vision_config(const GgufModel& model, Json text) {
  VALORA_TRY(entry, entry_of(*model.vision));
  return VisionConfigReader(model, *entry, std::move(text)).read();
}

}  // namespace valora::models
