// The compressed-tensors configuration, as llm-compressor writes it.
#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "models/quantised/config.h"
#include "models/spec/load_error.h"

namespace valora::models {
namespace {

constexpr size_t kMaxPatterns = 1024;  // each is tried on every linear

adapters::Regex compile(const ConfigReader& config, const std::string& pattern,
                        const std::string& key) {
  auto regex = adapters::Regex::compile(pattern, key);
  if (!regex.ok()) config.refuse(regex.error().message);
  return std::move(regex).value();
}

// Reads an integer that may be -1.
std::optional<int64_t> group_size(const ConfigReader& weights) {
  if (!weights.has("group_size")) return std::nullopt;
  const Json& value = weights.json().at("group_size");
  if (value.is_number_integer() && value == -1) return -1;
  return weights.integer("group_size");
}

ScaleScope scope_of(const ConfigReader& weights, std::optional<int64_t> group) {
  const std::string strategy = weights.text("strategy", !group         ? "tensor"
                                                        : *group == -1 ? "channel"
                                                                       : "group");
  if (strategy == "tensor") return ScaleScope::kTensor;
  if (strategy == "channel") return ScaleScope::kChannel;
  if (strategy == "block") return ScaleScope::kBlock;
  if (strategy != "group")
    weights.refuse("strategy \"" + strategy + "\" of weights is not supported");
  if (!group || *group == -1) weights.refuse("strategy \"group\" needs a \"group_size\"");
  return ScaleScope::kGroup;
}

// Reads [128, 128], or "128x128" as older releases write it.
void read_blocks(const ConfigReader& weights, QuantisedScheme& scheme) {
  std::vector<int64_t> sizes;
  const bool text =
      weights.has("block_structure") && weights.json().at("block_structure").is_string();
  if (text) {
    sizes.resize(2);
    const std::string structure = weights.text("block_structure", "");
    if (std::sscanf(structure.c_str(), "%ldx%ld", &sizes[0], &sizes[1]) != 2) sizes.clear();
  } else {
    sizes = weights.integers("block_structure");
  }
  constexpr int64_t kMost = int64_t{1} << 30;
  if (sizes.size() != 2 || std::ranges::any_of(sizes, [](int64_t s) { return s < 1 || s > kMost; }))
    weights.refuse("\"block_structure\" must be two sizes, as in [128, 128]");
  scheme.block_out = sizes[0];
  scheme.block_in = sizes[1];
}

// Known keys of weights. Those not read below say how the integers were found, not what they mean.
const std::set<std::string> kWeightKeys = {
    "num_bits", "type",     "symmetric",       "group_size",  "strategy", "block_structure",
    "dynamic",  "actorder", "observer_kwargs", "scale_dtype", "zp_dtype", "observer"};

QuantisedScheme read_scheme(const ConfigReader& weights, const std::string& format) {
  for (const auto& [key, value] : weights.json().items())
    if (!kWeightKeys.contains(key) && !value.is_null())
      weights.refuse("\"" + key + "\" of weights is not known; it may change their values");
  refuse_set(weights, {"dynamic"});
  QuantisedScheme scheme;
  const auto group = group_size(weights);
  scheme.bits = static_cast<int>(weights.at_most("num_bits", 64, 8));
  scheme.scope = scope_of(weights, group);
  if (scheme.scope == ScaleScope::kGroup) scheme.group = *group;
  if (scheme.scope == ScaleScope::kBlock) read_blocks(weights, scheme);
  scheme.symmetric = weights.flag("symmetric", true);
  const std::string type = weights.text("type", "int");
  const bool floats = type == "float";
  if (type != "int" && !floats) weights.refuse("type \"" + type + "\" is not supported");
  if (format == "pack-quantized" && !floats) {
    scheme.packing = Packing::kWords;
  } else if ((format == "naive-quantized" || format == "int-quantized") && !floats) {
    scheme.packing = Packing::kBytes;
  } else if ((format == "naive-quantized" || format == "float-quantized") && floats) {
    scheme.packing = Packing::kFloats;
  } else {
    weights.refuse("format \"" + format + "\" with weights of type \"" + type +
                   "\" is not supported, only pack-quantized, int-quantized, naive-quantized and "
                   "float-quantized");
  }
  if (floats ? scheme.bits != 8 : scheme.bits != 4 && scheme.bits != 8)
    weights.refuse("weights of " + std::to_string(scheme.bits) + " bits (num_bits) and type \"" +
                   type + "\" are not supported, only integers of 4 or 8 bits and floats of 8");
  if (scheme.scope == ScaleScope::kBlock && !floats)
    weights.refuse("strategy \"block\" is supported for floats alone");
  if (floats && !scheme.symmetric)
    weights.refuse("floats with zero-points (\"symmetric\": false) are not supported");
  return scheme;
}

// Known keys of inputs. Those not read below say how the scale was found, not what it means.
const std::set<std::string> kInputKeys = {
    "num_bits",        "type",        "symmetric", "strategy", "dynamic",    "actorder",
    "observer_kwargs", "scale_dtype", "zp_dtype",  "observer", "group_size", "block_structure"};

// How inputs are rounded in a linear whose weights have this scheme.
InputScale read_inputs(const ConfigReader& inputs, const QuantisedScheme& weights) {
  for (const auto& [key, value] : inputs.json().items())
    if (!kInputKeys.contains(key) && !value.is_null())
      inputs.refuse("\"" + key + "\" of input_activations is not known; it may change answers");
  refuse_set(inputs, {"scale_dtype", "group_size", "block_structure"});
  const std::string type = inputs.text("type", "int");
  if (const bool floats = weights.packing == Packing::kFloats;
      inputs.at_most("num_bits", 64, 8) != 8 || type != (floats ? "float" : "int") ||
      (!floats && weights.packing != Packing::kBytes))
    inputs.refuse(
        "input_activations are supported in the 8 bits of the weights alone: integers "
        "with int-quantized ones, floats with float-quantized ones");
  if (!inputs.flag("symmetric", true))
    inputs.refuse("input_activations with zero-points (\"symmetric\": false) are not supported");
  const bool dynamic = inputs.flag("dynamic", false);
  const std::string strategy = inputs.text("strategy", "tensor");
  if (strategy == "token" && dynamic) return InputScale::kToken;
  if (strategy == "tensor" && !dynamic) return InputScale::kStored;
  inputs.refuse("input_activations with strategy \"" + strategy + "\" and dynamic " +
                (dynamic ? "true" : "false") +
                " are not supported, only a dynamic scale per token or a stored one");
}

// Rounding outputs would change every product.
void refuse_outputs(const ConfigReader& group) {
  if (group.has("output_activations"))
    group.refuse("quantised activations (output_activations) are not supported");
}

std::optional<QuantisedScheme> scheme_of_group(const ConfigReader& group,
                                               const std::string& format) {
  refuse_outputs(group);
  if (!group.has("weights")) {
    if (group.has("input_activations"))
      group.refuse("input_activations without weights are not supported");
    return std::nullopt;
  }
  QuantisedScheme scheme = read_scheme(group.child("weights"), group.text("format", format));
  if (group.has("input_activations"))
    scheme.inputs = read_inputs(group.child("input_activations"), scheme);
  return scheme;
}

bool is_class(const std::string& target) { return target == "Linear" || target == "Module"; }

struct Targets {
  std::map<std::string, std::pair<std::optional<QuantisedScheme>, std::string>> groups;
};

Targets read_targets(const ConfigReader& config, const std::string& format) {
  const ConfigReader groups = config.child("config_groups");
  Targets targets;
  for (const auto& [name, unused] : groups.json().items()) {
    const ConfigReader group(groups.child(name).json(), config.file() + ".config_groups." + name);
    const auto scheme = scheme_of_group(group, format);
    for (const std::string& target : group.texts("targets")) {
      const auto [it, added] = targets.groups.emplace(target, std::pair(scheme, name));
      if (!added && it->second.first != scheme)
        config.refuse("target \"" + target + "\" is in config_groups " + it->second.second +
                      " and " + name + ", which differ");
    }
  }
  return targets;
}

void add_ignored(const ConfigReader& config, QuantisedConfig& made) {
  QuantisedConfig::Rule ignored{{}, {}, "ignore"};
  size_t patterns = 0;
  for (const std::string& entry : config.texts("ignore")) {
    if (entry.starts_with("re:")) {
      if (++patterns > kMaxPatterns) config.refuse("\"ignore\" has too many expressions");
      ignored.linears.add_pattern(compile(config, entry.substr(3), "ignore"));
    } else if (is_class(entry)) {
      ignored.linears.add_all();
    } else {
      ignored.linears.add_name(entry);
    }
  }
  made.add(std::move(ignored));
}

}  // namespace

QuantisedConfig read_compressed_tensors_config(const ConfigReader& config) {
  refuse_set(config, {"kv_cache_scheme", "transform_config", "moe_sparsity_config"});
  if (config.has("sparsity_config") && config.json().at("sparsity_config").is_object()) {
    const ConfigReader sparsity = config.child("sparsity_config");
    if (const std::string format = sparsity.text("format", "dense"); format != "dense")
      config.refuse("sparse weights (sparsity_config, format \"" + format +
                    "\") are not supported");
  }
  // In earlier states, transformers rounds stored floats in each product.
  if (const std::string status = config.text("quantization_status", "compressed");
      status != "compressed")
    config.refuse("quantization_status \"" + status + "\" is not supported, only \"compressed\"");
  const std::string format = config.text("format", "dense");
  const Targets targets = read_targets(config, format);
  QuantisedConfig made("compressed-tensors " + format, config.json().dump(), config.file());
  add_ignored(config, made);
  // As in compressed-tensors, if several targets match: first names, then expressions in the order
  // of their text, then classes.
  size_t patterns = 0;
  const auto add = [&](auto&& chosen, auto&& fill) {
    for (const auto& [target, group] : targets.groups) {
      if (!chosen(target)) continue;
      QuantisedConfig::Rule rule{{}, group.first, "config_groups." + group.second};
      fill(rule.linears, target);
      made.add(std::move(rule));
    }
  };
  const auto is_pattern = [](const std::string& t) { return t.starts_with("re:"); };
  std::map<std::string, QuantisedConfig::Rule> named;
  for (const auto& [target, group] : targets.groups) {
    if (is_pattern(target) || is_class(target)) continue;
    named
        .try_emplace(group.second,
                     QuantisedConfig::Rule{{}, group.first, "config_groups." + group.second})
        .first->second.linears.add_name(target);
  }
  for (auto& [name, rule] : named) made.add(std::move(rule));
  add(is_pattern, [&](NameSet& linears, const std::string& target) {
    if (++patterns > kMaxPatterns) config.refuse("\"targets\" has too many expressions");
    linears.add_pattern(compile(config, target.substr(3), "targets"));
  });
  add(is_class, [](NameSet& linears, const std::string&) { linears.add_all(); });
  return made;
}

}  // namespace valora::models
