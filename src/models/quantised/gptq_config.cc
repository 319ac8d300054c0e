// The GPTQ and AWQ configurations that transformers, GPT-QModel, AutoGPTQ and AutoAWQ write, and
// AutoRound's for tensors in these two layouts.
#include <algorithm>

#include "base/text/strings.h"
#include "models/quantised/config.h"
#include "models/spec/load_error.h"

namespace valora::models {
namespace {

// -1 means one scale per output.
void read_group(const ConfigReader& config, const char* key, QuantisedScheme& scheme) {
  const Json value = config.has(key) ? config.json().at(key) : Json(128);
  if (value.is_number_integer() && value == -1) {
    scheme.scope = ScaleScope::kChannel;
    return;
  }
  scheme.scope = ScaleScope::kGroup;
  scheme.group = config.integer(key, 128);
}

int read_bits(const ConfigReader& config, const char* key, int fallback) {
  return static_cast<int>(fallback ? config.at_most(key, 64, fallback) : config.at_most(key, 64));
}

void add_for_all(QuantisedConfig& made, const QuantisedScheme& scheme) {
  QuantisedConfig::Rule all{{}, scheme, "quant_method"};
  all.linears.add_all();
  made.add(std::move(all));
}

void check_gptq_bits(const ConfigReader& config, int bits) {
  if (bits != 4 && bits != 8)
    config.refuse("GPTQ weights of " + std::to_string(bits) +
                  " bits are not supported, only of 4 and 8");
}

// GPT-QModel's per-linear overrides by regular expression; "-:…" excludes linears from
// quantisation.
void read_dynamic(const ConfigReader& config, const QuantisedScheme& scheme,
                  QuantisedConfig& made) {
  constexpr size_t kMostRules = 1024;
  if (!config.has("dynamic")) return;
  const ConfigReader dynamic(config.child("dynamic").json(), config.file() + ".dynamic");
  if (dynamic.json().size() > kMostRules) dynamic.refuse("there are too many rules");
  for (const auto& [key, value] : dynamic.json().items()) {
    QuantisedConfig::Rule rule{{}, scheme, "dynamic." + key};
    const bool skips = key.starts_with("-:");
    const std::string pattern = skips || key.starts_with("+:") ? key.substr(2) : key;
    auto regex = adapters::Regex::compile(pattern, "dynamic");
    if (!regex.ok()) dynamic.refuse(regex.error().message);
    rule.linears.add_pattern(std::move(regex).value());
    if (skips) {
      rule.scheme = std::nullopt;
    } else if (value.is_object()) {
      const ConfigReader own(value, dynamic.file());
      rule.scheme->bits = read_bits(own, "bits", scheme.bits);
      check_gptq_bits(own, rule.scheme->bits);
      if (own.has("group_size")) read_group(own, "group_size", *rule.scheme);
      rule.scheme->symmetric = own.flag("sym", scheme.symmetric);
      rule.scheme->ordered = own.flag("desc_act", scheme.ordered);
    }
    made.add_unordered(std::move(rule));
  }
}

// Absent keys keep the scheme's values; outer: those of the whole model.
void read_auto_round_scheme(const ConfigReader& config, bool outer, QuantisedScheme& scheme) {
  const bool awq = scheme.packing == Packing::kAwq;
  scheme.bits = read_bits(config, "bits", scheme.bits);
  if (awq ? scheme.bits != 4 : scheme.bits != 4 && scheme.bits != 8)
    config.refuse("AutoRound weights of " + std::to_string(scheme.bits) +
                  (awq ? " bits are not supported in AWQ's layout, only of 4"
                       : " bits are not supported, only of 4 and 8"));
  if (outer || config.has("group_size")) read_group(config, "group_size", scheme);
  scheme.symmetric = !awq && config.flag("sym", scheme.symmetric);
}

// AutoRound takes a key with any of these as a regular expression, which may match anywhere.
bool is_expression(const std::string& key) {
  return key.find_first_of("*+?^$()[]{}|\\") != key.npos;
}

// Settings of single linears; those of 16 bits or more stay in floats.
void add_extra_rules(const ConfigReader& config, const QuantisedScheme& scheme,
                     QuantisedConfig& made) {
  constexpr size_t kMostRules = 65536, kMostExpressions = 1024;
  if (!config.has("extra_config")) return;
  const ConfigReader extra(config.child("extra_config").json(), config.file() + ".extra_config");
  if (extra.json().size() > kMostRules) extra.refuse("there are too many rules");
  size_t expressions = 0;
  std::vector<std::pair<std::optional<QuantisedScheme>, NameSet>> named;
  for (const auto& [key, value] : extra.json().items()) {
    if (!value.is_object()) extra.refuse("\"" + key + "\" must be an object");
    const ConfigReader own(value, extra.file() + "." + key);
    std::optional<QuantisedScheme> chosen = scheme;
    if (own.text("data_type", "int") != "int" || read_bits(own, "bits", scheme.bits) >= 16)
      chosen.reset();
    else
      read_auto_round_scheme(own, false, *chosen);
    if (!is_expression(key)) {
      auto known = std::ranges::find(named, chosen, &decltype(named)::value_type::first);
      if (known == named.end()) known = named.insert(known, {chosen, {}});
      known->second.add_name(key);
      continue;
    }
    if (++expressions > kMostExpressions) extra.refuse("there are too many expressions");
    auto regex = adapters::Regex::compile(key.front() == '^' ? key : ".*(?:" + key + ")", key);
    if (!regex.ok()) extra.refuse(regex.error().message);
    QuantisedConfig::Rule rule{{}, chosen, "extra_config." + key};
    rule.linears.add_pattern(std::move(regex).value());
    made.add_unordered(std::move(rule));
  }
  for (auto& [chosen, names] : named)
    made.add_unordered({std::move(names), chosen, "extra_config"});
}

}  // namespace

QuantisedConfig read_gptq_config(const ConfigReader& config) {
  refuse_set(config, {"is_marlin_format", "rotation", "adapter"});
  const std::string format =
      lower_case(config.text("checkpoint_format", config.text("format", "gptq")));
  if (format != "gptq" && format != "gptq_v2")
    config.refuse("checkpoint_format \"" + format + "\" is not supported, only gptq and gptq_v2");
  if (const std::string words = config.text("pack_dtype", "int32"); words != "int32")
    config.refuse("pack_dtype \"" + words + "\" is not supported, only int32");
  QuantisedScheme scheme{.packing = Packing::kGptq};
  scheme.bits = read_bits(config, "bits", 0);
  check_gptq_bits(config, scheme.bits);
  read_group(config, "group_size", scheme);
  scheme.symmetric = config.flag("sym", true);
  scheme.zeros_less_one = format == "gptq";
  scheme.ordered = config.flag("desc_act", false);
  QuantisedConfig made(format == "gptq" ? "GPTQ" : "GPTQ (gptq_v2)", config.json().dump(),
                       config.file());
  read_dynamic(config, scheme, made);
  add_for_all(made, scheme);
  return made;
}

QuantisedConfig read_awq_config(const ConfigReader& config) {
  const std::string version = lower_case(config.text("version", config.text("format", "gemm")));
  // exllama and ipex name kernels that read the gemm layout.
  if (version != "gemm" && version != "exllama" && version != "ipex")
    config.refuse("AWQ's version \"" + version +
                  "\" stores weights in another order and is not supported, only gemm");
  if (lower_case(config.text("backend", "autoawq")) == "llm-awq")
    config.refuse("AWQ's backend \"llm-awq\" stores weights in another order and is not supported");
  const bool old = config.has("w_bit");
  QuantisedScheme scheme{.packing = Packing::kAwq};
  scheme.bits = read_bits(config, old ? "w_bit" : "bits", 4);
  if (scheme.bits != 4)
    config.refuse("AWQ weights of " + std::to_string(scheme.bits) +
                  " bits are not supported, only of 4");
  read_group(config, old ? "q_group_size" : "group_size", scheme);
  if (!config.flag("zero_point", true))
    config.refuse("AWQ without zero-points (\"zero_point\": false) is not supported");
  scheme.symmetric = false;
  QuantisedConfig made("AWQ", config.json().dump(), config.file());
  QuantisedConfig::Rule kept{{}, {}, "modules_to_not_convert"};
  constexpr size_t kMostParts = 8192;  // each is compared with every linear
  const std::vector<std::string> parts = config.texts("modules_to_not_convert");
  if (parts.size() > kMostParts) config.refuse("\"modules_to_not_convert\" has too many entries");
  for (const std::string& part : parts) kept.linears.add_part(part);
  made.add(std::move(kept));
  add_for_all(made, scheme);
  return made;
}

QuantisedConfig read_auto_round_config(const ConfigReader& config) {
  refuse_set(config, {"super_bits", "super_group_size", "rotation_config", "transform_config"});
  const std::string packing = config.text("packing_format", "");
  const bool awq = packing == "auto_round:auto_awq" || packing == "auto_awq";
  if (!awq && packing != "auto_round:auto_gptq" && packing != "auto_gptq")
    config.refuse("quant_method auto-round with packing_format \"" + packing +
                  "\" is not supported, only with auto_round:auto_gptq and auto_round:auto_awq; "
                  "export the model in the format auto_gptq, auto_awq or llm_compressor");
  if (const std::string type = config.text("data_type", "int"); type != "int")
    config.refuse("AutoRound's data_type \"" + type + "\" is not supported, only int");
  if (config.has("act_bits") && config.at_most("act_bits", 64) < 16)
    config.refuse("AutoRound's rounding of activations (act_bits) is not supported");
  QuantisedScheme scheme{.packing = awq ? Packing::kAwq : Packing::kGptq, .bits = 4};
  read_auto_round_scheme(config, true, scheme);
  scheme.zeros_less_one = !awq;
  QuantisedConfig made(awq ? "AutoRound (AWQ)" : "AutoRound (GPTQ)", config.json().dump(),
                       config.file());
  add_extra_rules(config, scheme, made);
  add_for_all(made, scheme);
  return made;
}

QuantisedConfig read_fp8_config(const ConfigReader& config) {
  QuantisedScheme scheme{.packing = Packing::kFp8};
  // Some writers set it to null: one scale for the whole weight.
  const bool whole =
      config.json().contains("weight_block_size") && !config.has("weight_block_size");
  scheme.scope = whole ? ScaleScope::kTensor : ScaleScope::kBlock;
  std::vector<int64_t> block{128, 128};
  if (config.has("weight_block_size")) block = config.integers("weight_block_size");
  if (block.size() != 2 ||
      std::ranges::any_of(block, [](int64_t s) { return s < 1 || s > (int64_t{1} << 30); }))
    config.refuse("\"weight_block_size\" must be two sizes, as in [128, 128]");
  scheme.block_out = block[0];
  scheme.block_in = block[1];
  if (const std::string format = config.text("fmt", "e4m3"); format != "e4m3")
    config.refuse("fp8 weights of format \"" + format + "\" (fmt) are not supported, only e4m3");
  QuantisedConfig made("fp8", config.json().dump(), config.file());
  add_for_all(made, scheme);
  return made;
}

}  // namespace valora::models
