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

}  // namespace

Result<GgufSource> gguf_source(const Gguf& file, const GgufTensor& tensor, const Json& config) {
  const std::string type = config["model_type"].get<std::string>();
  const bool gemma = type == "gemma3_text";
  const size_t dot = tensor.name.rfind('.');
  const std::string stored = tensor.name.substr(0, dot),
                    end = dot == tensor.name.npos ? "" : tensor.name.substr(dot);
  const std::string module = module_name(stored, gemma);
  if (module.empty()) return GgufSource{tensor.name};
  GgufSource source{module + end};
  source.one_more = gemma && stored.ends_with("_norm");
  const bool queries = module.ends_with(".q_proj"), keys = module.ends_with(".k_proj");
  if (type != "llama" || !(queries || keys)) return source;
  source.head_rows = config["head_dim"].get<int64_t>();
  const int64_t rows = tensor.shape.front();
  if (source.head_rows < 2 || source.head_rows % 2 != 0 || rows % source.head_rows != 0)
    return unprocessable(file.path() + ": tensor " + tensor.name + " has " + std::to_string(rows) +
                             " rows, which heads of " + std::to_string(source.head_rows) +
                             " do not divide",
                         file.path());
  return source;
}

}  // namespace valora::models
