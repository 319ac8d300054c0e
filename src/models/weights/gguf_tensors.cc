#include "models/weights/gguf_tensors.h"

#include <algorithm>
#include <array>

namespace valora::models {
namespace {

struct TensorName {
  const char *stored, *name;
};
constexpr std::array<TensorName, 3> kWholeNames{
    {{"token_embd", "model.embed_tokens"}, {"output_norm", "model.norm"}, {"output", "lm_head"}}};
// After "blk.N." and "model.layers.N.".
constexpr std::array<TensorName, 11> kLayerNames{{{"attn_norm", "input_layernorm"},
                                                  {"attn_q", "self_attn.q_proj"},
                                                  {"attn_k", "self_attn.k_proj"},
                                                  {"attn_v", "self_attn.v_proj"},
                                                  {"attn_output", "self_attn.o_proj"},
                                                  {"attn_q_norm", "self_attn.q_norm"},
                                                  {"attn_k_norm", "self_attn.k_norm"},
                                                  {"ffn_norm", "post_attention_layernorm"},
                                                  {"ffn_gate", "mlp.gate_proj"},
                                                  {"ffn_up", "mlp.up_proj"},
                                                  {"ffn_down", "mlp.down_proj"}}};
// Gemma 3's norms, replacing those above.
constexpr std::array<TensorName, 3> kGemmaNames{
    {{"post_attention_norm", "post_attention_layernorm"},
     {"ffn_norm", "pre_feedforward_layernorm"},
     {"post_ffw_norm", "post_feedforward_layernorm"}}};

template <size_t N>
const char* renamed(const std::array<TensorName, N>& names, const std::string& stored) {
  const auto* const found =
      std::ranges::find_if(names, [&](const TensorName& n) { return stored == n.stored; });
  return found == names.end() ? nullptr : found->name;
}

// The transformers name without its suffix (".weight"); empty if there is no counterpart.
std::string module_name(const std::string& stored, bool gemma) {
  if (const char* whole = renamed(kWholeNames, stored)) return whole;
  constexpr std::string_view kBlock = "blk.";
  const size_t dot = stored.find('.', kBlock.size());
  if (!stored.starts_with(kBlock) || dot == stored.npos) return {};
  const std::string number = stored.substr(kBlock.size(), dot - kBlock.size()),
                    part = stored.substr(dot + 1);
  const char* own = gemma ? renamed(kGemmaNames, part) : nullptr;
  const char* name = own ? own : renamed(kLayerNames, part);
  return name ? "model.layers." + number + "." + name : std::string();
}

Result<GgufSource> language_source(const Gguf& file, const GgufTensor& tensor, const Json& text,
                                   bool interleaved) {
  const bool gemma = text["model_type"] == "gemma3_text";
  const size_t dot = tensor.name.rfind('.');
  const std::string stored = tensor.name.substr(0, dot),
                    end = dot == tensor.name.npos ? "" : tensor.name.substr(dot);
  const std::string module = module_name(stored, gemma);
  GgufSource source{module.empty() ? tensor.name : module + end};
  source.tensors = {&tensor};
  if (module.empty()) return source;
  source.one_more = gemma && stored.ends_with("_norm");
  if (interleaved && (module.ends_with(".q_proj") || module.ends_with(".k_proj")))
    VALORA_CHECK(set_head_rows(file, tensor, text["head_dim"].get<int64_t>(), source));
  return source;
}

}  // namespace

Status set_head_rows(const Gguf& file, const GgufTensor& tensor, int64_t head_rows,
                     GgufSource& source) {
  const int64_t rows = tensor.shape.front();
  if (head_rows < 2 || head_rows % 2 != 0 || rows % head_rows != 0)
    return unprocessable(file.path() + ": tensor " + tensor.name + " has " + std::to_string(rows) +
                             " rows, which heads of " + std::to_string(head_rows) +
                             " do not divide",
                         file.path());
  source.head_rows = head_rows;
  return {};
}

Result<std::vector<GgufSource>> gguf_language_sources(const Gguf& file, const Json& config) {
  const Json& text = config.contains("text_config") ? config["text_config"] : config;
  VALORA_TRY(architecture, file.metadata().text("general.architecture"));
  const bool interleaved = architecture == "llama" || architecture == "mistral3";
  std::vector<GgufSource> sources;
  for (const GgufTensor& tensor : file.tensors()) {
    VALORA_TRY(source, language_source(file, tensor, text, interleaved));
    sources.push_back(std::move(source));
  }
  return sources;
}

}  // namespace valora::models
