#include "adapters/folder/lora_config.h"

#include <algorithm>
#include <array>

#include "adapters/folder/lora_options.h"
#include "base/json/json.h"
#include "base/json/parse_ordered.h"
#include "base/text/strings.h"

namespace valora::adapters {
namespace {

constexpr size_t kMaxConfigBytes = size_t{16} << 20;
constexpr size_t kMaxPatterns = 1 << 14;  // keys in rank_pattern or alpha_pattern
constexpr size_t kMaxRegexes = 128;       // per option
// Limit for all regular expressions of an option: 20 bytes can take milliseconds to compile.
constexpr size_t kMaxRegexBytes = 8 << 10;
constexpr JsonLimits kLimits{
    .max_bytes = kMaxConfigBytes, .max_depth = 16, .max_values = size_t{1} << 19};
constexpr size_t kMaxWarnings = 20;     // they are listed with every adapter
constexpr size_t kMaxLayers = 1 << 20;  // entries in layers_to_transform

// Options for training, initialisation and bookkeeping that do not affect the computation: PEFT's,
// then those of ms-swift and unsloth. fan_in_fan_out and megatron_config concern layers that no
// supported model has.
constexpr std::array kIgnored{"peft_type",       "auto_mapping",   "base_model_name_or_path",
                              "revision",        "task_type",      "inference_mode",
                              "peft_version",    "lora_dropout",   "megatron_core",
                              "megatron_config", "loftq_config",   "eva_config",
                              "corda_config",    "lora_ga_config", "velora_config",
                              "fan_in_fan_out",  "merge_weights",  "qalora_group_size",
                              "runtime_config",  "lora_dtype",     "lorap_lr_ratio",
                              "lorap_emb_lr",    "unsloth_fixed"};
constexpr std::array kHonoured{"r",
                               "lora_alpha",
                               "use_rslora",
                               "target_modules",
                               "target_parameters",
                               "exclude_modules",
                               "modules_to_save",
                               "layers_to_transform",
                               "layers_pattern",
                               "rank_pattern",
                               "alpha_pattern",
                               "bias",
                               "lora_bias",
                               "use_dora",
                               "use_bdlora",
                               "trainable_token_indices",
                               "ensure_weight_tying",
                               "init_lora_weights",
                               "alora_invocation_tokens"};
// Supported only if unset. "bias" and "init_lora_weights" have their own checks.
constexpr std::array kRefused{"layer_replication", "use_qalora",  "kasa_config",
                              "monteclora_config", "enable_lora", "arrow_config"};

template <size_t N>
bool contains(const std::array<const char*, N>& keys, const std::string& key) {
  return std::any_of(keys.begin(), keys.end(), [&](const char* k) { return key == k; });
}

Error refused(const std::string& key, const Json& value) {
  return unprocessable(
      key + " = " + shortened(value.dump(), 80) + " is not supported by this version", key);
}

bool is_unset(const Json& value) {
  if (value.is_null() || value == false) return true;
  return (value.is_array() || value.is_object()) && value.empty();
}

// Some initialisations also change the base model's weights when the adapter is loaded, so its
// tensors do not match the base weights on disk.
Status check_initialisation(const Json& value) {
  if (value.is_null() || value.is_boolean()) return {};
  if (value == "gaussian" || value == "eva" || value == "orthogonal" || value == "mica") return {};
  return unprocessable(
      "init_lora_weights = " + shortened(value.dump(), 80) +
          " cannot be served: the adapter was trained on changed base weights (convert it with "
          "save_pretrained's path_initial_model_for_weight_conversion)",
      "init_lora_weights");
}

Status check_options(const Json& config, std::vector<std::string>& warnings) {
  VALORA_TRY(peft_type, required_field<std::string>(config, "peft_type"));
  if (peft_type != "LORA")
    return unprocessable("peft_type \"" + shortened(peft_type) + "\" is not supported, only LORA",
                         "peft_type");
  for (const auto& [key, value] : config.items()) {
    if (contains(kRefused, key)) {
      if (!is_unset(value)) return refused(key, value);
    } else if (warnings.size() < kMaxWarnings && !is_unset(value) && !contains(kIgnored, key) &&
               !contains(kHonoured, key)) {
      warnings.push_back("adapter_config.json: the option \"" + shortened(key) +
                         "\" is unknown and was ignored");
    }
  }
  const Json bias = config.value("bias", Json());
  if (!bias.is_null() && bias != "none" && bias != "all" && bias != "lora_only")
    return refused("bias", bias);
  return check_initialisation(config.value("init_lora_weights", Json()));
}

Status check_regex_bytes(size_t bytes, const std::string& key) {
  if (bytes <= kMaxRegexBytes) return {};
  return unprocessable(
      key + " has more than " + std::to_string(kMaxRegexBytes) + " bytes of regular expressions",
      key);
}

Result<NameSet> name_set(const Names& names, const std::string& key) {
  NameSet set;
  if (names.as_list) {
    set.names.insert(names.values.begin(), names.values.end());
  } else if (names.given && !names.values[0].empty()) {
    VALORA_CHECK(check_regex_bytes(names.values[0].size(), key));
    VALORA_TRY(regex, Regex::compile(names.values[0], key));
    set.regex = std::move(regex);
  }
  return set;
}

Status read_targets(const Json& config, TargetRules& rules) {
  VALORA_TRY(targets, read_names(config, "target_modules"));
  VALORA_TRY(parameters, read_names(config, "target_parameters"));
  rules.parameters.insert(parameters.values.begin(), parameters.values.end());
  if (!targets.given && !rules.parameters.empty()) targets.as_list = targets.given = true;
  if (!targets.given) return unprocessable("target_modules is missing", "target_modules");
  rules.all_linear = !targets.as_list && lower_case(targets.values[0]) == "all-linear";
  if (!rules.all_linear) {
    VALORA_TRY(set, name_set(targets, "target_modules"));
    rules.targets = std::move(set);
  }
  VALORA_TRY(excluded, read_names(config, "exclude_modules"));
  VALORA_TRY(set, name_set(excluded, "exclude_modules"));
  rules.excluded = std::move(set);
  return {};
}

Result<std::vector<Regex>> compile_all(const std::vector<std::string>& patterns,
                                       const std::string& before, const std::string& after,
                                       const std::string& key) {
  if (patterns.size() > kMaxRegexes)
    return unprocessable(key + " has more than " + std::to_string(kMaxRegexes) + " entries", key);
  std::vector<Regex> regexes;
  size_t bytes = 0;
  for (const std::string& pattern : patterns) {
    VALORA_CHECK(check_regex_bytes(bytes += pattern.size(), key));
    VALORA_TRY(regex, Regex::compile(before + pattern + after, key));
    regexes.push_back(std::move(regex));
  }
  return regexes;
}

Status read_modules_to_save(const Json& config, LoraConfig& lora) {
  VALORA_TRY(saved, read_names(config, "modules_to_save"));
  lora.modules_to_save = saved.values;
  VALORA_TRY(regexes, compile_all(saved.values, "(^|.*\\.)", "($|\\..*)", "modules_to_save"));
  lora.rules.saved = std::move(regexes);
  return {};
}

Result<std::optional<std::set<int64_t>>> read_layers(const Json& config) {
  const Json value = config.value("layers_to_transform", Json());
  std::set<int64_t> layers;
  if (value.is_null()) return std::optional<std::set<int64_t>>{};
  const Json list = value.is_array() ? value : Json::array({value});
  if (list.size() > kMaxLayers)
    return invalid("\"layers_to_transform\" is too long", "layers_to_transform");
  for (const Json& layer : list) {
    const std::optional<int64_t> index = as_integer(layer);
    if (!index)
      return invalid("\"layers_to_transform\" must be an integer or a list of integers",
                     "layers_to_transform");
    layers.insert(*index);
  }
  return layers.empty() ? std::nullopt : std::optional(std::move(layers));
}

Status read_layer_rules(const Json& config, TargetRules& rules) {
  VALORA_TRY(layers, read_layers(config));
  VALORA_TRY(patterns, read_names(config, "layers_pattern"));
  std::erase(patterns.values, "");
  const bool by_regex = rules.all_linear || rules.targets.regex;
  if (by_regex && (layers || !patterns.values.empty()))
    return unprocessable("layers_to_transform and layers_pattern need target_modules to be a list",
                         "layers_to_transform");
  if (!layers && !patterns.values.empty())
    return unprocessable("layers_pattern needs layers_to_transform", "layers_pattern");
  if (patterns.values.empty()) patterns.values.push_back("[^.]*");
  VALORA_TRY(regexes, compile_all(patterns.values, ".*\\.", "\\.(\\d+)\\.", "layers_pattern"));
  rules.layer_patterns = std::move(regexes);
  rules.layers = std::move(layers);
  return {};
}

// The keys of the top-level object `name` in file order, which a parsed Json does not keep. As in
// Python, a repeated key keeps its first place.
std::vector<std::string> key_order(const std::string& text, const std::string& name) {
  const OrderedJson config = parse_ordered(text);
  std::vector<std::string> keys;
  for (const auto& [key, value] : config.at(name).items()) keys.push_back(key);
  return keys;
}

Digest selection_of(const Json& config) {
  DigestBuilder digest;
  for (const char* key : {"target_modules", "target_parameters", "exclude_modules",
                          "modules_to_save", "layers_to_transform", "layers_pattern"})
    digest.add(config.value(key, Json()).dump());
  return digest.finish();
}

template <typename T>
Result<PatternValues<T>> read_patterns(const Json& config, const std::string& text,
                                       const std::string& key) {
  PatternValues<T> patterns;
  const Json object = config.value(key, Json());
  if (object.is_null() || (object.is_object() && object.empty())) return patterns;
  if (!object.is_object()) return invalid("\"" + key + "\" must be an object", key);
  if (object.size() > kMaxPatterns)
    return unprocessable(key + " has more than " + std::to_string(kMaxPatterns) + " entries", key);
  size_t regexes = 0, bytes = 0;
  for (const std::string& name : key_order(text, key)) {
    VALORA_TRY(value, required_field<T>(object, name));
    if (!NamePattern::is_plain(name)) {
      VALORA_CHECK(check_regex_bytes(bytes += name.size(), key));
      if (++regexes > kMaxRegexes)
        return unprocessable(
            key + " has more than " + std::to_string(kMaxRegexes) + " regular expressions", key);
    }
    VALORA_CHECK(patterns.keys.add(name, key));
    patterns.values.push_back(value);
  }
  return patterns;
}

Status read_ranks(const Json& config, const std::string& text, TargetRules& rules) {
  VALORA_TRY(rank, field_or<int32_t>(config, "r", rules.rank));
  VALORA_TRY(alpha, field_or<double>(config, "lora_alpha", rules.alpha));
  VALORA_TRY(rslora, field_or<bool>(config, "use_rslora", false));
  VALORA_TRY(ranks, read_patterns<int32_t>(config, text, "rank_pattern"));
  VALORA_TRY(alphas, read_patterns<double>(config, text, "alpha_pattern"));
  rules.rank = rank;
  rules.alpha = alpha;
  rules.rslora = rslora;
  rules.ranks = std::move(ranks);
  rules.alphas = std::move(alphas);
  return {};
}

Result<LoraConfig> parse_lora_config(const Json& config, const std::string& text) {
  if (!config.is_object()) return invalid("not a JSON object");
  LoraConfig lora;
  VALORA_CHECK(check_options(config, lora.warnings));
  lora.rules.selection = selection_of(config);
  VALORA_CHECK(read_targets(config, lora.rules));
  VALORA_CHECK(read_modules_to_save(config, lora));
  VALORA_CHECK(read_whole_values(config, lora));
  VALORA_CHECK(read_layer_rules(config, lora.rules));
  VALORA_CHECK(read_ranks(config, text, lora.rules));
  VALORA_CHECK(read_block_diagonal(config, lora));
  VALORA_CHECK(read_invocation(config, lora));
  return lora;
}

}  // namespace

Result<LoraConfig> lora_config_of(const Json& config) {
  return parse_lora_config(config, config.dump());
}

Result<LoraConfig> read_lora_config(const InputFolder& folder) {
  constexpr const char* kName = "adapter_config.json";
  VALORA_TRY(text, folder.text(kName, kMaxConfigBytes));
  VALORA_TRY(config, parse_json(text, folder.path_of(kName), kLimits));
  auto lora = parse_lora_config(config, text);
  if (!lora.ok())
    return Error{lora.error().code, "adapter_config.json: " + lora.error().message,
                 lora.error().param};
  return lora;
}

}  // namespace valora::adapters
