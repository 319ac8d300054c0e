#include "adapters/folder/lora_options.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_set>

#include "base/text/strings.h"

namespace valora::adapters {
namespace {

constexpr int64_t kLastToken = std::numeric_limits<int32_t>::max();  // of any vocabulary

Result<std::vector<int64_t>> read_ids(const Json& list) {
  constexpr const char* kKey = "trainable_token_indices";
  const Error wrong = invalid(
      "\"trainable_token_indices\" must be a list of tokens, or such a list for each module", kKey);
  if (!list.is_array()) return wrong;
  std::vector<int64_t> ids;
  std::unordered_set<int64_t> seen;
  for (const Json& id : list) {
    const std::optional<int64_t> token = as_integer(id);
    if (!token) return wrong;
    ids.push_back(*token);
    const bool unknown = *token < 0 || *token > kLastToken;
    if (unknown || !seen.insert(*token).second)
      return unprocessable("trainable_token_indices has the token " + std::to_string(*token) +
                               (unknown ? ", which no vocabulary has" : " twice"),
                           kKey);
  }
  return ids;
}

Status read_token_ids(const Json& config, LoraConfig& lora) {
  const Json value = config.value("trainable_token_indices", Json());
  if (value.is_null()) return {};
  if (!value.is_object()) {
    VALORA_TRY(ids, read_ids(value));
    if (!ids.empty()) lora.token_ids.push_back({"", std::move(ids)});
    return {};
  }
  for (const auto& [module, list] : value.items()) {
    VALORA_TRY(ids, read_ids(list));
    if (!ids.empty()) lora.token_ids.push_back({module, std::move(ids)});
  }
  return {};
}

}  // namespace

Result<Names> read_names(const Json& config, const std::string& key) {
  const Json value = config.value(key, Json());
  if (value.is_null()) return Names{};
  if (value.is_string()) return Names{{value.get<std::string>()}, true, false};
  const Error wrong = invalid("\"" + key + "\" must be a string or a list of strings", key);
  if (!value.is_array()) return wrong;
  Names names{{}, true, true};
  for (const Json& name : value) {
    if (!name.is_string()) return wrong;
    names.values.push_back(name.get<std::string>());
  }
  return names;
}

Status read_whole_values(const Json& config, LoraConfig& lora) {
  VALORA_TRY(lora_bias, field_or<bool>(config, "lora_bias", false));
  VALORA_TRY(dora, field_or<bool>(config, "use_dora", false));
  lora.dora = dora;
  VALORA_TRY(ensure_weight_tying, field_or<bool>(config, "ensure_weight_tying", false));
  lora.lora_bias = lora_bias;
  lora.ensure_weight_tying = ensure_weight_tying;
  const Json bias = config.value("bias", Json());
  lora.trained_biases = bias == "all" || bias == "lora_only";
  return read_token_ids(config, lora);
}

Status read_block_diagonal(const Json& config, LoraConfig& lora) {
  constexpr const char* kKey = "use_bdlora";
  const Json value = config.value(kKey, Json());
  if (value.is_null() || value == false) return {};
  if (!value.is_object()) return invalid("\"use_bdlora\" must be an object", kKey);
  for (const auto& [key, setting] : value.items())
    if (key != "target_modules_bd_a" && key != "target_modules_bd_b" && key != "nblocks" &&
        key != "match_strict")
      return unprocessable(
          "use_bdlora has the option " + shortened(key) + ", which this version does not know",
          kKey);
  VALORA_TRY(a, read_names(value, "target_modules_bd_a"));
  VALORA_TRY(b, read_names(value, "target_modules_bd_b"));
  VALORA_TRY(blocks, field_or<int64_t>(value, "nblocks", 1));
  VALORA_TRY(strict, field_or<bool>(value, "match_strict", true));
  if (blocks < 1) return unprocessable("use_bdlora has nblocks below 1", kKey);
  if (lora.dora) return unprocessable("use_bdlora and use_dora are both set", kKey);
  lora.rules.block_diagonal = BlockDiagonal{a.values, b.values, blocks, strict};
  return {};
}

Status read_invocation(const Json& config, LoraConfig& lora) {
  constexpr const char* kKey = "alora_invocation_tokens";
  constexpr size_t kMaxTokens = 4096;
  const Json value = config.value(kKey, Json());
  if (value.is_null()) return {};
  if (!value.is_array() || value.size() > kMaxTokens)
    return invalid("\"alora_invocation_tokens\" must be a list of tokens", kKey);
  if (value.empty())
    return unprocessable("alora_invocation_tokens is empty: the adapter would never act", kKey);
  for (const Json& id : value) {
    const std::optional<int64_t> token = as_integer(id);
    if (!token || *token < 0 || *token > kLastToken)
      return invalid("\"alora_invocation_tokens\" has " + shortened(id.dump(), 40) +
                         ", which is no token of any vocabulary",
                     kKey);
    lora.invocation.push_back(static_cast<int32_t>(*token));
  }
  // PEFT applies these to all tokens, or not at all.
  if (lora.dora || lora.lora_bias || lora.trained_biases || !lora.token_ids.empty() ||
      lora.rules.block_diagonal)
    return unprocessable(
        "alora_invocation_tokens with use_dora, lora_bias, bias, use_bdlora or "
        "trainable_token_indices cannot be served",
        kKey);
  return {};
}

}  // namespace valora::adapters
