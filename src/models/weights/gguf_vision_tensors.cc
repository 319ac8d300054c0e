// The names and forms of a vision part's tensors, as llama.cpp's converter writes them.
#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

#include <fmt/format.h>

#include "models/spec/gguf_vision.h"
#include "models/weights/gguf_tensors.h"

namespace valora::models {
namespace {

// A module's name in the file and in transformers.
struct VisionName {
  std::string stored, name;
  bool bare = false;  // one tensor, whose name in transformers has no ".weight"
};

struct VisionNames {
  std::string blocks;                 // the prefix of a block, before its number
  std::vector<VisionName> of_blocks;  // after "v.blk.N." and the prefix
  std::vector<VisionName> others;
  bool joins = false;  // queries, keys and values are one linear, "attn.qkv"
};

constexpr char kPatches[] = "v.patch_embd.weight", kLaterPatches[] = "v.patch_embd.weight.1";
constexpr std::string_view kVisionBlock = "v.blk.", kDeepstack = "v.deepstack.";
constexpr char kProjector[] = "model.multi_modal_projector.";

void append(std::vector<VisionName>& names, std::vector<VisionName> more) {
  std::ranges::move(more, std::back_inserter(names));
}

VisionNames qwen_names(GgufVisionKind kind) {
  const std::string tower = "model.visual.", merger = tower + "merger.";
  VisionNames names{.blocks = tower + "blocks.",
                    .of_blocks = {{"ln1", "norm1"},
                                  {"ln2", "norm2"},
                                  {"attn_qkv", "attn.qkv"},
                                  {"attn_out", "attn.proj"}},
                    .others = {{"v.patch_embd", tower + "patch_embed.proj"}},
                    .joins = true};
  if (kind == GgufVisionKind::kQwen3Vl) {
    append(names.of_blocks, {{"ffn_up", "mlp.linear_fc1"}, {"ffn_down", "mlp.linear_fc2"}});
    append(names.others, {{"v.position_embd", tower + "pos_embed"},
                          {"v.post_ln", merger + "norm"},
                          {"mm.0", merger + "linear_fc1"},
                          {"mm.2", merger + "linear_fc2"}});
    return names;
  }
  if (kind == GgufVisionKind::kQwen2Vl)
    append(names.of_blocks, {{"ffn_up", "mlp.fc1"}, {"ffn_down", "mlp.fc2"}});
  else
    append(
        names.of_blocks,
        {{"ffn_gate", "mlp.gate_proj"}, {"ffn_up", "mlp.up_proj"}, {"ffn_down", "mlp.down_proj"}});
  append(names.others,
         {{"v.post_ln", merger + "ln_q"}, {"mm.0", merger + "mlp.0"}, {"mm.2", merger + "mlp.2"}});
  return names;
}

// CLIP's and SigLIP's towers.
VisionNames clip_names(const std::string& tower, std::vector<VisionName> projector) {
  const std::string embeddings = tower + "embeddings.";
  VisionNames names{.blocks = tower + "encoder.layers.",
                    .of_blocks = {{"ln1", "layer_norm1"},
                                  {"ln2", "layer_norm2"},
                                  {"attn_q", "self_attn.q_proj"},
                                  {"attn_k", "self_attn.k_proj"},
                                  {"attn_v", "self_attn.v_proj"},
                                  {"attn_out", "self_attn.out_proj"},
                                  {"ffn_up", "mlp.fc1"},
                                  {"ffn_down", "mlp.fc2"}},
                    .others = {{"v.class_embd", embeddings + "class_embedding", true},
                               {"v.patch_embd", embeddings + "patch_embedding"},
                               {"v.position_embd", embeddings + "position_embedding"},
                               {"v.pre_ln", tower + "pre_layrnorm"},
                               {"v.post_ln", tower + "post_layernorm"}}};
  append(names.others, std::move(projector));
  return names;
}

VisionNames internvl_names() {
  const std::string tower = "model.vision_tower.", embeddings = tower + "embeddings.",
                    projector = kProjector;
  return {.blocks = tower + "encoder.layer.",
          .of_blocks = {{"ln1", "layernorm_before"},
                        {"ln2", "layernorm_after"},
                        {"attn_q", "attention.q_proj"},
                        {"attn_k", "attention.k_proj"},
                        {"attn_v", "attention.v_proj"},
                        {"attn_q_norm", "attention.q_norm"},
                        {"attn_k_norm", "attention.k_norm"},
                        {"attn_out", "attention.projection_layer"},
                        {"ffn_up", "mlp.fc1"},
                        {"ffn_down", "mlp.fc2"},
                        {"ls1", "lambda_1", true},
                        {"ls2", "lambda_2", true}},
          .others = {{"v.class_embd", embeddings + "cls_token", true},
                     {"v.patch_embd", embeddings + "patch_embeddings.projection"},
                     {"v.position_embd", embeddings + "position_embeddings", true},
                     {"mm.model.mlp.0", projector + "layer_norm"},
                     {"mm.model.mlp.1", projector + "linear_1"},
                     {"mm.model.mlp.3", projector + "linear_2"}}};
}

VisionNames pixtral_names() {
  const std::string tower = "model.vision_tower.", projector = kProjector;
  return {.blocks = tower + "transformer.layers.",
          .of_blocks = {{"ln1", "attention_norm"},
                        {"ln2", "ffn_norm"},
                        {"attn_q", "attention.q_proj"},
                        {"attn_k", "attention.k_proj"},
                        {"attn_v", "attention.v_proj"},
                        {"attn_out", "attention.o_proj"},
                        {"ffn_gate", "feed_forward.gate_proj"},
                        {"ffn_up", "feed_forward.up_proj"},
                        {"ffn_down", "feed_forward.down_proj"}},
          .others = {{"v.patch_embd", tower + "patch_conv"},
                     {"v.pre_ln", tower + "ln_pre"},
                     {"mm.input_norm", projector + "norm"},
                     {"mm.patch_merger", projector + "patch_merger.merging_layer"},
                     {"mm.1", projector + "linear_1"},
                     {"mm.2", projector + "linear_2"}}};
}

VisionNames names_of(GgufVisionKind kind) {
  const std::string tower = "model.vision_tower.vision_model.", projector = kProjector;
  switch (kind) {
    case GgufVisionKind::kQwen2Vl:
    case GgufVisionKind::kQwen25Vl:
    case GgufVisionKind::kQwen3Vl: return qwen_names(kind);
    case GgufVisionKind::kIdefics3:
      return clip_names("model.vision_model.",
                        {{"mm.model.fc", "model.connector.modality_projection.proj"}});
    case GgufVisionKind::kGemma3:
      return clip_names(tower,
                        {{"mm.input_projection", projector + "mm_input_projection_weight", true},
                         {"mm.soft_emb_norm", projector + "mm_soft_emb_norm"}});
    case GgufVisionKind::kLlava:
      return clip_names(tower,
                        {{"mm.0", projector + "linear_1"}, {"mm.2", projector + "linear_2"}});
    case GgufVisionKind::kInternVl: return internvl_names();
    case GgufVisionKind::kPixtral: return pixtral_names();
  }
  return {};
}

class VisionSources {
 public:
  VisionSources(const Gguf& file, const Json& vision, GgufVisionKind kind)
      : file_(file),
        vision_(vision),
        kind_(kind),
        names_(names_of(kind)),
        swaps_(gguf_swaps_feed_forward(file)) {}

  Result<std::vector<GgufSource>> read() {
    std::vector<GgufSource> sources;
    for (const GgufTensor& tensor : file_.tensors()) {
      if (tensor.name == kLaterPatches || is_joined(tensor.name, {"attn_k", "attn_v"})) continue;
      GgufSource source{name_of(tensor.name)};
      source.tensors = {&tensor};
      VALORA_CHECK(add_joined(source));
      VALORA_CHECK(set_form(source));
      sources.push_back(std::move(source));
    }
    return sources;
  }

 private:
  // A name's module, and its end: ".weight", ".bias" or nothing.
  struct Split {
    std::string module, end;
  };
  static Split split(const std::string& name) {
    for (const std::string_view end : {".weight", ".bias"})
      if (name.ends_with(end)) return {name.substr(0, name.size() - end.size()), std::string(end)};
    return {name, ""};
  }

  // A tensor of a block: its number, and its module's name in the block.
  struct InBlock {
    std::string number, module;
  };
  static std::optional<InBlock> in_block(const std::string& module, std::string_view prefix) {
    if (!module.starts_with(prefix)) return {};
    const size_t dot = module.find('.', prefix.size());
    if (dot == module.npos) return {};
    return InBlock{module.substr(prefix.size(), dot - prefix.size()), module.substr(dot + 1)};
  }

  bool is_joined(const std::string& name, std::initializer_list<const char*> parts) const {
    if (!names_.joins) return false;
    const auto block = in_block(split(name).module, kVisionBlock);
    return block && std::ranges::find(parts, block->module) != parts.end();
  }

  static std::string renamed(const std::vector<VisionName>& names, const std::string& module,
                             const std::string& end) {
    const auto found = std::ranges::find(names, module, &VisionName::stored);
    return found == names.end() ? std::string() : found->name + (found->bare ? "" : end);
  }

  // The name in transformers, else the stored one.
  std::string name_of(const std::string& stored) const {
    const auto [module, end] = split(stored);
    if (const auto block = in_block(module, kDeepstack)) return deepstack_name(*block, end, stored);
    const auto block = in_block(module, kVisionBlock);
    if (!block) {
      const std::string name = renamed(names_.others, module, end);
      return name.empty() ? stored : name;
    }
    std::string part = block->module;
    if (swaps_ && (part == "ffn_up" || part == "ffn_down"))
      part = part == "ffn_up" ? "ffn_down" : "ffn_up";
    const std::string name =
        is_joined(stored, {"attn_q"}) ? "attn.qkv" + end : renamed(names_.of_blocks, part, end);
    return name.empty() ? stored : names_.blocks + block->number + "." + name;
  }

  // The file numbers deepstack mergers by the block that they follow.
  std::string deepstack_name(const InBlock& merger, const std::string& end,
                             const std::string& stored) const {
    if (!vision_.contains("deepstack_visual_indexes")) return stored;
    const Json& blocks = vision_["deepstack_visual_indexes"];
    const auto found = std::ranges::find_if(blocks, [&](const Json& block) {
      return std::to_string(block.get<int64_t>()) == merger.number;
    });
    const std::string module = renamed(
        {{"norm", "norm"}, {"fc1", "linear_fc1"}, {"fc2", "linear_fc2"}}, merger.module, end);
    if (found == blocks.end() || module.empty()) return stored;
    return fmt::format("model.visual.deepstack_merger_list.{}.{}", found - blocks.begin(), module);
  }

  // Adds the tensors that are one in the checkpoint with the first of the source's.
  Status add_joined(GgufSource& source) const {
    const GgufTensor& first = *source.tensors.front();
    std::vector<std::string> others;
    if (first.name == kPatches && vision_.contains("temporal_patch_size")) {
      source.join = GgufJoin::kFrames;
      others = {kLaterPatches};
    } else if (is_joined(first.name, {"attn_q"})) {
      const auto [module, end] = split(first.name);
      const std::string block = module.substr(0, module.size() - 1);
      others = {block + "k" + end, block + "v" + end};
    }
    for (const std::string& name : others) {
      const GgufTensor* const tensor = file_.find(name);
      if (!tensor)
        return unprocessable(file_.path() + " has no tensor " + name + ", but " + first.name,
                             file_.path());
      if (tensor->type != first.type || tensor->shape != first.shape)
        return unprocessable(
            fmt::format("{}: tensors {} and {} differ in type or shape, but are one in the model",
                        file_.path(), first.name, name),
            file_.path());
      source.tensors.push_back(tensor);
    }
    return {};
  }

  Status set_form(GgufSource& source) const {
    const GgufTensor& tensor = *source.tensors.front();
    const auto block = in_block(split(tensor.name).module, kVisionBlock);
    if (kind_ == GgufVisionKind::kPixtral && block &&
        (block->module == "attn_q" || block->module == "attn_k"))
      return set_head_rows(file_, tensor, vision_["head_dim"].get<int64_t>(), source);
    source.one_more = tensor.name == "mm.soft_emb_norm.weight";
    // Converters leave out dimensions of 1.
    if (kind_ == GgufVisionKind::kInternVl &&
        (tensor.name == "v.class_embd" || tensor.name == "v.position_embd.weight")) {
      source.shape = tensor.shape;
      source.shape.insert(source.shape.begin(), 3 - std::min<size_t>(3, tensor.shape.size()), 1);
    }
    return {};
  }

  const Gguf& file_;
  const Json& vision_;
  const GgufVisionKind kind_;
  const VisionNames names_;
  const bool swaps_;
};

}  // namespace

Result<std::vector<GgufSource>> gguf_vision_sources(const Gguf& file, const Json& config) {
  VALORA_TRY(kind, gguf_vision_kind(file));
  return VisionSources(file, config["vision_config"], kind).read();
}

}  // namespace valora::models
