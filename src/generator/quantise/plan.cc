#include "generator/quantise/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "adapters/tensors/stored_experts.h"
#include "models/weights/weight_files.h"

namespace valora::generator {
namespace {

using adapters::Module;
using adapters::ModuleKind;

bool is_float(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

Status check_float(const TensorView& weight, const std::string& tensor, const std::string& path) {
  if (is_float(weight.dtype)) return {};
  return unprocessable(fmt::format("{}: tensor {} is stored as {}; only folders in floats of 16 "
                                   "and 32 bits are quantised",
                                   path, tensor, dtype_name(weight.dtype)),
                       path);
}

// A tensor of the checkpoint.
struct Found {
  std::string name;  // the module's, as spelled there
  std::string tensor;
  size_t file = 0;
  const TensorView* view = nullptr;
};

// tensor_of(name): the tensor to look for under this name of the module.
template <typename TensorOf>
std::optional<Found> find_tensor(const QuantisePlan& plan, const models::ModelSpec& spec, int index,
                                 const TensorOf& tensor_of) {
  for (const std::string& name : spec.modules.names(index)) {
    const std::string tensor = tensor_of(name);
    for (size_t file = 0; file < plan.files.size(); ++file)
      if (const TensorView* view = plan.files[file]->find(tensor))
        return Found{name, tensor, file, view};
  }
  return std::nullopt;
}

// The linear of an expert in the tensor of all experts.
Result<PlannedLinear> expert_of(const QuantisePlan& plan, const models::ModelSpec& spec, int index,
                                const Found& found) {
  const Module& module = spec.modules.modules()[index];
  const std::string& path = plan.files[found.file]->path();
  VALORA_CHECK(check_float(*found.view, found.tensor, path));
  const size_t part = found.name.rfind('.'), number = found.name.rfind('.', part - 1) + 1;
  const std::string own = found.name.substr(part + 1);
  const int64_t expert = std::stoll(found.name.substr(number, part - number)),
                all = own == "down_proj" ? module.out : 2 * module.out;
  VALORA_TRY(transposed, models::experts_are_transposed(
                             fmt::format("{}: tensor {}", path, found.tensor), found.view->shape,
                             {spec.experts.count, all, module.in}));
  PlannedLinear linear{.module = index,
                       .name = found.name,
                       .file = found.file,
                       .tensor = found.tensor,
                       .out = module.out,
                       .in = module.in,
                       .transposed = transposed,
                       .first = own == "up_proj" ? module.out : 0};
  const size_t value = dtype_size(found.view->dtype),
               bytes = static_cast<size_t>(all * module.in) * value;
  linear.weight = {found.view->dtype,
                   {module.in, all},
                   found.view->bytes.subspan(static_cast<size_t>(expert) * bytes, bytes)};
  if (transposed) return linear;
  const size_t row = static_cast<size_t>(module.in) * value;
  linear.weight.shape = {module.out, module.in};
  linear.weight.bytes = linear.weight.bytes.subspan(static_cast<size_t>(linear.first) * row,
                                                    static_cast<size_t>(module.out) * row);
  return linear;
}

Result<PlannedLinear> find_linear(const QuantisePlan& plan, const models::ModelSpec& spec,
                                  int index) {
  const Module& module = spec.modules.modules()[index];
  const auto own =
      find_tensor(plan, spec, index, [](const std::string& name) { return name + ".weight"; });
  if (own) {
    const std::string& path = plan.files[own->file]->path();
    VALORA_CHECK(check_float(*own->view, own->tensor, path));
    if (own->view->shape != std::vector<int64_t>{module.out, module.in})
      return unprocessable(
          fmt::format("{}: tensor {} is not [{}, {}]", path, own->tensor, module.out, module.in),
          path);
    return PlannedLinear{.module = index,
                         .name = own->name,
                         .file = own->file,
                         .tensor = own->tensor,
                         .out = module.out,
                         .in = module.in,
                         .weight = *own->view};
  }
  if (module.mixture == Module::Mixture::kExpert) {
    const auto whole = find_tensor(plan, spec, index, [&](const std::string& name) {
      return adapters::stored_parameter_of(module, name);
    });
    if (whole) return expert_of(plan, spec, index, *whole);
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
