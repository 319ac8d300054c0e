#include "models/spec/gguf_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/text/strings.h"
#include "text/gguf/tokenizer.h"

namespace valora::models {
namespace {

struct GgufFamily {
  const char* name;          // in general.architecture
  const char* architecture;  // in config.json
  const char* type;
};
// The language models of Qwen's vision-language models are those without pictures: all axes of a
// text's positions are equal.
constexpr std::array<GgufFamily, 7> kGgufFamilies{{{"llama", "LlamaForCausalLM", "llama"},
                                                   {"mistral3", "MistralForCausalLM", "mistral"},
                                                   {"qwen2", "Qwen2ForCausalLM", "qwen2"},
                                                   {"qwen2vl", "Qwen2ForCausalLM", "qwen2"},
                                                   {"qwen3", "Qwen3ForCausalLM", "qwen3"},
                                                   {"qwen3vl", "Qwen3ForCausalLM", "qwen3"},
                                                   {"gemma3", "Gemma3ForCausalLM", "gemma3_text"}}};

// Keys after "ARCHITECTURE." that are read or have no effect on answers.
constexpr std::array kReadKeys = {"context_length",
                                  "embedding_length",
                                  "block_count",
                                  "feed_forward_length",
                                  "vocab_size",
                                  "attention.head_count",
                                  "attention.head_count_kv",
                                  "attention.key_length",
                                  "attention.value_length",
                                  "attention.layer_norm_rms_epsilon",
                                  "attention.sliding_window",
                                  "rope.dimension_count",
                                  "rope.freq_base",
                                  "rope.scaling.type",
                                  "rope.scaling.factor",
                                  "rope.scaling.original_context_length",
                                  "rope.scaling.finetuned",
                                  "pooling_type"};
// For gemma3 only.
constexpr std::array kGemmaKeys = {"attention.sliding_window_pattern", "rope.freq_base_swa",
                                   "final_logit_softcapping", "attn_logit_softcapping"};

// For qwen2vl and qwen3vl, read by gguf_vision_config().
constexpr std::array kSectionKeys = {"rope.dimension_sections", "n_deepstack_layers"};

// Settings that are supported only with their neutral value.
struct NeutralKey {
  const char* name;
  double value;
};
constexpr std::array<NeutralKey, 8> kNeutralKeys{{{"expert_count", 0},
                                                  {"expert_used_count", 0},
                                                  {"attention.causal", 1},
                                                  {"attention.clamp_kqv", 0},
                                                  {"attention.max_alibi_bias", 0},
                                                  {"rope.scaling.attn_factor", 1},
                                                  {"rope.scaling.yarn_ext_factor", 1},
                                                  {"rope.scaling.yarn_log_multiplier", 0}}};

class GgufConfigReader {
 public:
  GgufConfigReader(const Gguf& file, const GgufFamily& family)
      : file_(file),
        data_(file.metadata()),
        prefix_(std::string(family.name) + "."),
        gemma_(family.name == std::string_view("gemma3")),
        sections_(std::string_view(family.name).ends_with("vl")) {
    config_ = {{"architectures", {family.architecture}}, {"model_type", family.type}};
  }

  Result<Json> read() {
    VALORA_CHECK(check_keys());
    VALORA_CHECK(read_sizes());
    VALORA_CHECK(read_heads());
    VALORA_CHECK(read_windows());
    VALORA_CHECK(read_rope());
    VALORA_TRY(eps, data_.number(key("attention.layer_norm_rms_epsilon")));
    config_["rms_norm_eps"] = eps;
    config_["tie_word_embeddings"] = file_.find("output.weight") == nullptr;
    config_["attention_bias"] = file_.find("blk.0.attn_q.bias") != nullptr;
    config_["mlp_bias"] = file_.find("blk.0.ffn_gate.bias") != nullptr;
    VALORA_TRY(ends, text::gguf_end_tokens(data_));
    if (!ends.empty()) config_["eos_token_id"] = ends;
    return std::move(config_);
  }

 private:
  std::string key(const char* name) const { return prefix_ + name; }

  Status check_keys() const {
    for (const std::string& name : data_.keys()) {
      if (!name.starts_with(prefix_)) continue;
      const std::string own = name.substr(prefix_.size());
      const auto is_in = [&](const auto& list) {
        return std::ranges::find(list, own) != list.end();
      };
      if (is_in(kReadKeys) || (gemma_ && is_in(kGemmaKeys)) || (sections_ && is_in(kSectionKeys)))
        continue;
      const auto* const neutral =
          std::ranges::find_if(kNeutralKeys, [&](const NeutralKey& k) { return own == k.name; });
      if (neutral == kNeutralKeys.end()) return data_.wrong(name, "is not supported");
      VALORA_TRY(values, data_.numbers(name));
      if (!std::ranges::all_of(values, [&](double value) { return value == neutral->value; }))
        return data_.wrong(name, "is not supported with this value");
    }
    return {};
  }

  // A number that some writers repeat for each layer.
  Result<int64_t> of_all_layers(const char* name, std::optional<int64_t> fallback = {}) const {
    if (!data_.has(key(name)) && fallback) return *fallback;
    VALORA_TRY(values, data_.numbers(key(name)));
    if (values.empty()) return data_.wrong(key(name), "is missing");
    for (const double value : values)
      if (value != values.front() || value != std::floor(value) || std::abs(value) > (1 << 30))
        return data_.wrong(key(name), "must be one integer for all layers");
    return static_cast<int64_t>(values.front());
  }

  Status read_sizes() {
    for (const auto& [from, to] : {std::pair("context_length", "max_position_embeddings"),
                                   {"embedding_length", "hidden_size"},
                                   {"block_count", "num_hidden_layers"}}) {
      VALORA_TRY(size, data_.integer(key(from)));
      config_[to] = size;
    }
    VALORA_TRY(inner, of_all_layers("feed_forward_length"));
    config_["intermediate_size"] = inner;
    const GgufTensor* embedding = file_.find("token_embd.weight");
    if (!embedding || embedding->shape.size() != 2)
      return unprocessable(file_.path() + " has no tensor token_embd.weight of two dimensions",
                           file_.path());
    VALORA_TRY(vocab, data_.integer(key("vocab_size"), embedding->shape[0]));
    if (vocab != embedding->shape[0])
      return data_.wrong(key("vocab_size"), "is not the number of rows of token_embd.weight");
    config_["vocab_size"] = vocab;
    return {};
  }

  Status read_heads() {
    VALORA_TRY(heads, of_all_layers("attention.head_count"));
    VALORA_TRY(kv_heads, of_all_layers("attention.head_count_kv", heads));
    const auto hidden = config_["hidden_size"].get<int64_t>();
    if (heads < 1 || hidden < 1) return data_.wrong(key("attention.head_count"), "is out of range");
    VALORA_TRY(size, data_.integer(key("attention.key_length"), hidden / heads));
    VALORA_TRY(value_size, data_.integer(key("attention.value_length"), size));
    if (value_size != size)
      return data_.wrong(key("attention.value_length"), "must be attention.key_length");
    VALORA_TRY(turned, data_.integer(key("rope.dimension_count"), size));
    if (turned != size)
      return data_.wrong(key("rope.dimension_count"),
                         "must be the size of a head, " + std::to_string(size));
    config_["num_attention_heads"] = heads;
    config_["num_key_value_heads"] = kv_heads;
    config_["head_dim"] = size;
    if (!gemma_) return {};
    // The file does not say which of two scales the scores have: the largest model uses hidden size
    // / heads.
    constexpr int64_t kLargest = 62;
    config_["query_pre_attn_scalar"] =
        config_["num_hidden_layers"] == kLargest ? hidden / heads : size;
    return {};
  }

  Status read_windows() {
    VALORA_TRY(window, data_.integer(key("attention.sliding_window"), 0));
    if (config_["model_type"] == "mistral") config_["sliding_window"] = nullptr;
    if (!gemma_)
      return window == 0 ? Status()
                         : data_.wrong(key("attention.sliding_window"), "is not supported");
    if (window == 0) return data_.wrong(key("attention.sliding_window"), "is missing");
    config_["sliding_window"] = window;
    VALORA_TRY(pattern, data_.integer(key("attention.sliding_window_pattern"), 6));
    config_["sliding_window_pattern"] = pattern;
    VALORA_TRY(local, data_.number(key("rope.freq_base_swa"), 10000));
    config_["rope_local_base_freq"] = local;
    for (const char* name : {"final_logit_softcapping", "attn_logit_softcapping"}) {
      VALORA_TRY(cap, data_.number(key(name), 0));
      if (cap != 0) return data_.wrong(key(name), "is not supported");
    }
    return {};
  }

  Status read_rope() {
    VALORA_TRY(base, data_.number(key("rope.freq_base"), 10000));
    config_["rope_theta"] = base;
    VALORA_TRY(type, data_.text(key("rope.scaling.type"), "none"));
    VALORA_TRY(factor, data_.number(key("rope.scaling.factor"), 0));
    // Some writers give only the factor.
    if (type == "none" && factor != 0 && factor != 1) type = "linear";
    const GgufTensor* factors = file_.find("rope_freqs.weight");
    if (factors && type != "none")
      return data_.wrong(key("rope.scaling.type"), "and the tensor rope_freqs.weight both scale");
    if (factors) return read_factors(*factors);
    if (type == "none") return {};
    if (type != "linear" && type != "yarn")
      return data_.wrong(key("rope.scaling.type"), "is \"" + shortened(type, 40) +
                                                       "\", which is not supported, only linear "
                                                       "and yarn");
    config_["rope_scaling"] = {{"rope_type", type}, {"factor", factor}};
    if (type == "linear") return {};
    VALORA_TRY(original, data_.integer(key("rope.scaling.original_context_length"),
                                       config_["max_position_embeddings"].get<int64_t>()));
    config_["rope_scaling"]["original_max_position_embeddings"] = original;
    return {};
  }

  // The divisor of each frequency, as converters write the llama3 rope. It is expressed as longrope
  // with the same factors at all lengths.
  Status read_factors(const GgufTensor& tensor) {
    const auto half = static_cast<size_t>(config_["head_dim"].get<int64_t>() / 2);
    if (tensor.type != GgufType::kF32 || tensor.shape.size() != 1 ||
        static_cast<size_t>(tensor.shape[0]) != half)
      return unprocessable(file_.path() + ": tensor rope_freqs.weight must have " +
                               std::to_string(half) + " values of F32, half the size of a head",
                           file_.path());
    std::vector<float> factors(half);
    if (half > 0) std::memcpy(factors.data(), tensor.bytes.data(), tensor.bytes.size());
    if (!std::ranges::all_of(factors, [](float f) { return f > 0 && std::isfinite(f); }))
      return unprocessable(
          file_.path() + ": tensor rope_freqs.weight has values that are not above 0",
          file_.path());
    if (std::ranges::all_of(factors, [](float f) { return f == 1; })) return {};
    config_["rope_scaling"] = {
        {"rope_type", "longrope"},
        {"short_factor", factors},
        {"long_factor", factors},
        {"factor", 1.0},
        {"attention_factor", 1.0},
        {"original_max_position_embeddings", config_["max_position_embeddings"]}};
    return {};
  }

  const Gguf& file_;
  const GgufMetadata& data_;
  const std::string prefix_;
  const bool gemma_, sections_;
  Json config_;
};

// Refuses files that are not a complete language model, and identifies them.
Status check_kind(const Gguf& file) {
  const GgufMetadata& data = file.metadata();
  const auto is = [&](const std::string& what) {
    return unprocessable(file.path() + " is " + what, file.path());
  };
  VALORA_TRY(type, data.text("general.type", "model"));
  VALORA_TRY(architecture, data.text("general.architecture"));
  if (type == "mmproj" || architecture == "clip")
    return is(
        "the vision part of a model (mmproj): give the language model's file as the model, and "
        "this "
        "one with --mmproj");
  if (type == "adapter") return is("a LoRA adapter: give a folder of PEFT as the adapter");
  if (type != "model") return is("of the type \"" + shortened(type, 40) + "\", not a model");
  return {};
}

}  // namespace

Result<Json> gguf_config(const Gguf& file) {
  VALORA_CHECK(check_kind(file));
  VALORA_TRY(architecture, file.metadata().text("general.architecture"));
  std::string known;
  for (const GgufFamily& family : kGgufFamilies) {
    if (architecture == family.name) return GgufConfigReader(file, family).read();
    known += (known.empty() ? "" : ", ") + std::string(family.name);
  }
  return file.metadata().wrong(
      "general.architecture",
      "is \"" + shortened(architecture, 40) + "\", which is not supported, only " + known);
}

}  // namespace valora::models
