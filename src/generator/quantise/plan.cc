#include "generator/quantise/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/weight_files.h"

namespace valora::generator {
namespace {

using adapters::Module;
using adapters::ModuleKind;

bool is_float(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

Result<PlannedLinear> find_linear(const QuantisePlan& plan, const models::ModelSpec& spec,
                                  int index) {
  const Module& module = spec.modules.modules()[index];
  for (const std::string& name : spec.modules.names(index))
    for (size_t file = 0; file < plan.files.size(); ++file) {
      const TensorView* weight = plan.files[file]->find(name + ".weight");
      if (!weight) continue;
      const std::string& path = plan.files[file]->path();
      if (!is_float(weight->dtype))
        return unprocessable(fmt::format("{}: tensor {}.weight is stored as {}; only folders in "
                                         "floats of 16 and 32 bits are quantised",
                                         path, name, dtype_name(weight->dtype)),
                             path);
      if (weight->shape != std::vector<int64_t>{module.out, module.in})
        return unprocessable(
            fmt::format("{}: tensor {}.weight is not [{}, {}]", path, name, module.out, module.in),
            path);
      return PlannedLinear{index, name, file, 0, *weight};
    }
  return unprocessable(fmt::format("the checkpoint has no {}.weight", module.name));
}

OrderedJson weights_json(const QuantiseOptions& options, int64_t group) {
  OrderedJson weights{{"num_bits", bits_of(options.scheme)}, {"type", "int"}, {"symmetric", true}};
  weights["strategy"] = group > 0 ? "group" : "channel";
  if (group > 0) weights["group_size"] = group;
  weights["dynamic"] = false;
  return weights;
}

OrderedJson group_json(const QuantiseOptions& options, int64_t group,
                       const std::vector<std::string>& targets) {
  OrderedJson inputs = nullptr;
  if (options.scheme == QuantiseScheme::kW8A8)
    inputs = {{"num_bits", 8},
              {"type", "int"},
              {"symmetric", true},
              {"strategy", "token"},
              {"dynamic", true}};
  return {{"targets", targets},
          {"weights", weights_json(options, group)},
          {"input_activations", std::move(inputs)},
          {"output_activations", nullptr}};
}

}  // namespace

int bits_of(QuantiseScheme scheme) { return scheme == QuantiseScheme::kW4A16 ? 4 : 8; }

int64_t group_of(const QuantiseOptions& options) {
  if (options.scheme == QuantiseScheme::kW8A8) return 0;
  if (options.group > 0) return options.group;
  return options.scheme == QuantiseScheme::kW4A16 ? 32 : 128;
}

Result<QuantisePlan> plan_quantisation(const QuantiseOptions& options,
                                       const models::ModelSpec& spec) {
  QuantisePlan plan;
  VALORA_TRY(files, models::find_weight_files(options.engine.model_path));
  for (const std::string& path : files.paths) {
    VALORA_TRY(mapped, SafeTensors::open(path));
    plan.files.push_back(std::move(mapped));
  }
  const auto& modules = spec.modules.modules();
  for (int i = 0; i < static_cast<int>(modules.size()); ++i) {
    if (!modules[i].in_decoder()) {
      if (modules[i].kind == ModuleKind::kLinear || modules[i].kind == ModuleKind::kHead)
        for (const std::string& name : spec.modules.names(i)) plan.kept.push_back(name);
      continue;
    }
    VALORA_TRY(linear, find_linear(plan, spec, i));
    const int64_t group = group_of(options);
    linear.group = group > 0 && modules[i].in % group == 0 ? group : modules[i].in;
    plan.linears.push_back(std::move(linear));
  }
  if (plan.linears.empty()) return unprocessable("the model's decoder has no linears");
  std::ranges::sort(plan.kept);
  return plan;
}

OrderedJson quantization_config(const QuantiseOptions& options, const QuantisePlan& plan,
                                const models::ModelSpec& spec) {
  const int64_t group = group_of(options);
  std::vector<std::string> grouped, whole;
  for (const PlannedLinear& linear : plan.linears)
    for (const std::string& name : spec.modules.names(linear.module))
      (linear.group == group ? grouped : whole).push_back(name);
  OrderedJson groups = OrderedJson::object();
  // Other programs read a single rule for all linears best.
  if (grouped.empty() || whole.empty()) {
    groups["group_0"] = group_json(options, whole.empty() ? group : 0, {"Linear"});
  } else {
    groups["group_0"] = group_json(options, group, grouped);
    groups["group_1"] = group_json(options, 0, whole);
  }
  return {{"quant_method", "compressed-tensors"},
          {"format", options.scheme == QuantiseScheme::kW8A8 ? "int-quantized" : "pack-quantized"},
          {"quantization_status", "compressed"},
          {"config_groups", std::move(groups)},
          {"ignore", plan.kept},
          {"kv_cache_scheme", nullptr}};
}

}  // namespace valora::generator
