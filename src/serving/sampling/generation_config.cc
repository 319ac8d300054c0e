#include "serving/sampling/generation_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/log/log.h"
#include "base/text/strings.h"

namespace valora::serving {
namespace {

constexpr std::array<std::string_view, 6> kKnown = {
    "do_sample", "eos_token_id", "repetition_penalty", "temperature", "top_k", "top_p"};

Result<std::vector<int32_t>> read_eos(const Json& json, const std::string& file) {
  std::vector<int32_t> ids;
  if (!json.is_object() || !json.contains("eos_token_id") || json["eos_token_id"].is_null())
    return ids;
  const Json& eos = json["eos_token_id"];
  const Json list = eos.is_array() ? eos : Json::array({eos});
  for (const Json& id : list) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() > INT32_MAX)
      return unprocessable(file + ": \"eos_token_id\" must be a token id or a list of them", file);
    ids.push_back(id.get<int32_t>());
  }
  return ids;
}

Error out_of_range(const std::string& field, const std::string& range) {
  return invalid(field + " must be " + range, field);
}

// The bit mask that Sampler::sample() expects.
std::vector<uint32_t> bits_of(const std::vector<int32_t>& ids) {
  std::vector<uint32_t> bits;
  for (const int32_t id : ids) {
    if (id < 0) continue;
    const auto word = static_cast<size_t>(id) / 32;
    if (bits.size() <= word) bits.resize(word + 1);
    bits[word] |= uint32_t{1} << (id % 32);
  }
  return bits;
}

constexpr const char* kOverrides = "--override-generation-config";

Result<GenerationConfig> read_config(const Json& json, const std::string& source) {
  GenerationConfig config;
  VALORA_TRY(eos, read_eos(json, source));
  config.eos_token_ids = std::move(eos);
  VALORA_TRY(sample, field_or<bool>(json, "do_sample", true));
  VALORA_TRY(temperature, field_or<double>(json, "temperature", 1));
  VALORA_TRY(top_p, field_or<double>(json, "top_p", 1));
  VALORA_TRY(top_k, field_or<int32_t>(json, "top_k", 0));
  VALORA_TRY(penalty, field_or<double>(json, "repetition_penalty", 1));
  config.temperature = sample ? temperature : 0;
  config.top_p = top_p;
  config.top_k = top_k;
  config.repetition_penalty = penalty;
  if (const auto settled = resolve_sampling({}, config, 0, 0); !settled.ok())
    return unprocessable(source + ": " + settled.error().message, source);
  return config;
}

Result<Json> read_overrides(const std::string& text) {
  if (text.empty()) return Json::object();
  VALORA_TRY(json, parse_json(text, kOverrides));
  if (!json.is_object())
    return invalid(std::string(kOverrides) + " takes a JSON object", kOverrides);
  for (const auto& [key, value] : json.items())
    if (std::find(kKnown.begin(), kKnown.end(), key) == kKnown.end())
      return invalid(std::string(kOverrides) + " has \"" + shortened(key) +
                         "\"; known: do_sample, eos_token_id, repetition_penalty, temperature, "
                         "top_k, top_p",
                     kOverrides);
  return json;
}

}  // namespace

Result<GenerationConfig> read_generation_config(const std::string& dir, const Json& model_config,
                                                std::optional<int32_t> default_eos,
                                                const std::string& overrides) {
  const std::string file = dir + "/generation_config.json";
  Json json = Json::object();
  if (file_exists(file)) {
    VALORA_TRY(read, read_json_file(file));
    if (!read.is_object()) return unprocessable(file + " must hold a JSON object", file);
    json = std::move(read);
    if (const std::string unserved = unserved_settings(json); !unserved.empty())
      spdlog::warn(
          "{}: not applied, so that answers differ from those of transformers' generate(): {}",
          file, unserved);
  }
  VALORA_CHECK(read_config(json, file));  // first, so that its errors name the file
  VALORA_TRY(own, read_overrides(overrides));
  // Setting a temperature implies sampling, whatever the file says.
  if (own.contains("temperature") && !own.contains("do_sample")) own["do_sample"] = true;
  json.update(own);
  VALORA_TRY(config, read_config(json, own.empty() ? file : kOverrides));
  if (config.eos_token_ids.empty()) {
    VALORA_TRY(eos, read_eos(model_config, dir + "/config.json"));
    config.eos_token_ids = std::move(eos);
  }
  if (config.eos_token_ids.empty() && model_config.contains("text_config")) {
    VALORA_TRY(eos, read_eos(model_config["text_config"], dir + "/config.json"));
    config.eos_token_ids = std::move(eos);
  }
  if (config.eos_token_ids.empty() && default_eos) config.eos_token_ids = {*default_eos};
  if (config.eos_token_ids.empty())
    spdlog::warn(
        "{}: neither generation_config.json nor config.json has an eos_token_id; answers end only "
        "at their length limit",
        dir);
  return config;
}

Result<SamplingSettings> resolve_sampling(const SamplingParams& params,
                                          const GenerationConfig& defaults, int max_logprobs,
                                          uint64_t default_seed) {
  SamplingSettings s;
  s.temperature = params.temperature.value_or(defaults.temperature);
  s.top_p = params.top_p.value_or(defaults.top_p);
  s.top_k = params.top_k.value_or(defaults.top_k);
  s.min_p = params.min_p.value_or(0);
  s.repetition_penalty = params.repetition_penalty.value_or(defaults.repetition_penalty);
  s.presence_penalty = params.presence_penalty;
  s.frequency_penalty = params.frequency_penalty;
  s.logit_bias = params.logit_bias;
  s.allowed = bits_of(params.allowed_token_ids);
  s.seed = params.seed ? static_cast<uint64_t>(*params.seed) : default_seed;
  s.reported = params.logprob_token_ids;
  s.top_logprobs = params.logprobs.value_or(s.reported.empty() ? -1 : 0);

  // The conditions are written so that NaN fails.
  if (!(s.temperature >= 0 && std::isfinite(s.temperature)))
    return out_of_range("temperature", "0 or more");
  if (!(s.top_p >= 0 && s.top_p <= 1)) return out_of_range("top_p", "between 0 and 1");
  if (s.top_k < -1) return out_of_range("top_k", "-1, 0 or a positive number");
  if (!(s.min_p >= 0 && s.min_p <= 1)) return out_of_range("min_p", "between 0 and 1");
  if (!(s.repetition_penalty > 0 && std::isfinite(s.repetition_penalty)))
    return out_of_range("repetition_penalty", "above 0");
  if (!(std::abs(s.presence_penalty) <= 2))
    return out_of_range("presence_penalty", "between -2 and 2");
  if (!(std::abs(s.frequency_penalty) <= 2))
    return out_of_range("frequency_penalty", "between -2 and 2");
  for (const int32_t id : params.allowed_token_ids)
    if (id < 0) return out_of_range("allowed_token_ids", "token ids");
  if (std::ranges::any_of(s.reported, [](int32_t id) { return id < 0; }) ||
      s.reported.size() > static_cast<size_t>(max_logprobs))
    return out_of_range("logprob_token_ids",
                        "at most " + std::to_string(max_logprobs) + " token ids");
  for (const auto& [id, bias] : s.logit_bias)
    if (!std::isfinite(bias)) return out_of_range("logit_bias", "finite");
  if (params.logprobs && (*params.logprobs < 0 || *params.logprobs > max_logprobs))
    return out_of_range("logprobs", "between 0 and " + std::to_string(max_logprobs));
  if (params.prompt_logprobs &&
      (*params.prompt_logprobs < 0 || *params.prompt_logprobs > max_logprobs))
    return out_of_range("prompt_logprobs", "between 0 and " + std::to_string(max_logprobs));
  if (params.n < 1 || params.n > 128) return out_of_range("n", "between 1 and 128");
  if (params.max_tokens && *params.max_tokens < 0) return out_of_range("max_tokens", "0 or more");
  if (params.min_tokens < 0) return out_of_range("min_tokens", "0 or more");
  if (params.max_tokens && params.min_tokens > *params.max_tokens)
    return out_of_range("min_tokens", "at most max_tokens");
  if (s.temperature < 1e-5) s.temperature = 0;  // dividing by a smaller value would overflow
  if (s.top_k < 0) s.top_k = 0;
  return s;
}

namespace {

// Other settings that change the answers of transformers' generate(), with their neutral values.
struct Unserved {
  const char* key;
  double neutral = 0;
};
constexpr Unserved kUnserved[] = {{"num_beams", 1},
                                  {"num_beam_groups", 1},
                                  {"diversity_penalty"},
                                  {"no_repeat_ngram_size"},
                                  {"encoder_no_repeat_ngram_size"},
                                  {"encoder_repetition_penalty", 1},
                                  {"exponential_decay_length_penalty"},
                                  {"penalty_alpha"},
                                  {"dola_layers"},
                                  {"guidance_scale", 1},
                                  {"typical_p", 1},
                                  {"min_p"},
                                  {"top_h", 1},
                                  {"epsilon_cutoff"},
                                  {"eta_cutoff"},
                                  {"bad_words_ids"},
                                  {"suppress_tokens"},
                                  {"begin_suppress_tokens"},
                                  {"sequence_bias"},
                                  {"force_words_ids"},
                                  {"constraints"},
                                  {"forced_bos_token_id", -1},
                                  {"forced_eos_token_id", -1},
                                  {"token_healing"},
                                  {"watermarking_config"},
                                  {"stop_strings"},
                                  {"min_length"},
                                  {"min_new_tokens"},
                                  {"max_new_tokens", -1},
                                  {"max_time", -1},
                                  {"num_return_sequences", 1}};

bool is_set(const Json& value, double neutral) {
  if (value.is_number()) return value.get<double>() != neutral;
  return !(value.is_null() || value == false || value.empty());
}

}  // namespace

std::string unserved_settings(const Json& json) {
  std::string found;
  for (const auto& [key, neutral] : kUnserved)
    if (const auto it = json.find(key); it != json.end() && is_set(*it, neutral))
      found += (found.empty() ? "" : ", ") + std::string(key) + " " + shortened(it->dump(), 40);
  return found;
}

}  // namespace valora::serving
