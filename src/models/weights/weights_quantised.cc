// Loading the quantised linears of a checkpoint.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "models/quantised/config.h"
#include "models/quantised/stored_linear.h"
#include "models/spec/load_error.h"
#include "models/weights/weights.h"

namespace valora::models {
namespace {

// Name suffixes of tensors that hold a linear's integers or 8-bit floats.
constexpr std::array kWords = {"weight_packed", "qweight"};
// Name suffixes of the tensors next to them, which do not count as parameters.
constexpr std::array kCompanions = {"weight_scale",
                                    "weight_scale_inv",
                                    "weight_zero_point",
                                    "weight_shape",
                                    "weight_g_idx",
                                    "input_scale",
                                    "activation_scale",
                                    "SCB",
                                    "weight_format",
                                    "qzeros",
                                    "scales",
                                    "g_idx",
                                    "absmax",
                                    "quant_map",
                                    "nested_absmax",
                                    "nested_quant_map",
                                    "bitsandbytes__nf4",
                                    "bitsandbytes__fp4"};
// Present next to a weight that holds bitsandbytes codes.
constexpr char kCodeScales[] = ".absmax";

bool is_coded(DType dtype) { return dtype == DType::kI8 || dtype == DType::kF8E4M3; }

std::string part_of(const std::string& name) { return name.substr(name.rfind('.') + 1); }
std::string linear_of(const std::string& name) {
  const size_t dot = name.rfind('.');
  return dot == name.npos ? std::string() : name.substr(0, dot);
}

}  // namespace

class Weights::Parts final : public LinearTensors {
 public:
  Parts(Weights& weights, std::string linear) : weights_(weights), linear_(std::move(linear)) {}

  const TensorView* find(const std::string& part) const override {
    const Entry* entry = weights_.find(linear_ + "." + part);
    return entry ? &entry->view : nullptr;
  }
  at::Tensor read(const std::string& part) override {
    const Entry& entry = *weights_.find(linear_ + "." + part);
    weights_.used_.insert(entry.stored_name);
    return reads() ? weights_.stored(entry) : at::Tensor();
  }
  bool reads() const override { return !weights_.device_.is_meta(); }
  void fail(const std::string& part, const std::string& why) const override {
    const Entry* entry = weights_.find(linear_ + "." + part);
    const std::string place = entry ? weights_.path_of(*entry) : weights_.dir_;
    throw LoadError(unprocessable(
        place + ": tensor " + (entry ? entry->stored_name : linear_ + "." + part) + " " + why,
        place));
  }

 private:
  Weights& weights_;
  const std::string linear_;
};

void Weights::set_quantisation(std::shared_ptr<const QuantisedConfig> config) {
  quantisation_ = std::move(config);
  if (!quantisation_) return;
  quantised_.format = quantisation_->format();
  quantised_.encoding = quantisation_->describe();
  for (const auto& [name, entry] : entries_) {
    const std::string part = part_of(name), linear = linear_of(name);
    if (entries_.contains(name + kCodeScales))
      packed_[name] = static_cast<int64_t>(byte_size(entry.view)) * 2;
    if (std::ranges::find(kWords, part) == kWords.end()) continue;
    const auto* rule = quantisation_->rule_of_stored(names_in_file(linear));
    const int bits = rule && rule->scheme ? rule->scheme->bits : 32;
    int64_t count = static_cast<int64_t>(byte_size(entry.view)) * 8 / bits;
    // Exclude the padding of rows to whole words.
    if (const auto shape = entries_.find(linear + ".weight_shape"); shape != entries_.end()) {
      const TensorView& view = shape->second.view;
      if (view.dtype == DType::kI64 && view.shape == std::vector<int64_t>{2})
        count = std::clamp<int64_t>(tensor_of(view).prod().item<int64_t>(), 0, count);
    }
    packed_[name] = count;
  }
}

int64_t Weights::parameters_in(const Entry& entry) const {
  int64_t elements = 1;
  for (const int64_t size : entry.shape()) elements *= size;
  if (!quantisation_) return elements;
  if (const auto words = packed_.find(entry.stored_name); words != packed_.end())
    return words->second;
  return std::ranges::find(kCompanions, part_of(entry.stored_name)) == kCompanions.end() ? elements
                                                                                         : 0;
}

bool Weights::has_linear(const std::string& name) const {
  return has(name + ".weight") ||
         std::ranges::any_of(kWords, [&](const char* part) { return has(name + "." + part); });
}

std::vector<std::string> Weights::names_of(const std::string& name) const {
  std::vector<std::string> names{name};
  for (const auto& alias : aliases_)
    if (name.starts_with(alias.canonical))
      names.push_back(alias.alias + name.substr(alias.canonical.size()));
  return names;
}

std::vector<std::string> Weights::names_in_file(const std::string& stored) const {
  std::vector<std::string> names{stored};
  for (const auto& alias : aliases_)
    if (stored.starts_with(alias.alias))
      names.push_back(alias.canonical + stored.substr(alias.alias.size()));
  for (const auto& alias : aliases_)
    if (stored.starts_with(alias.canonical))
      names.push_back(alias.alias + stored.substr(alias.canonical.size()));
  return names;
}

std::unique_ptr<StoredLinear> Weights::quantised_linear(const std::string& name, int64_t out,
                                                        int64_t in) {
  if (const Entry* entry = find(name + ".weight"); entry && entry->has_blocks())
    return std::make_unique<StoredLinear>(block_linear(*entry, out, in));
  if (!quantisation_) return nullptr;
  Parts parts(*this, name);
  const TensorView* weight = parts.find("weight");
  const auto words = std::ranges::find_if(kWords, [&](const char* p) { return parts.has(p); });
  const bool packed = words != kWords.end(),
             coded = weight &&
                     (is_coded(weight->dtype) || parts.has(std::string("weight") + kCodeScales));
  if (!packed && !coded) {
    // transformers rounds such weights in each product.
    for (const char* scale : {"weight_scale", "weight_scale_inv"})
      if (weight && parts.has(scale))
        parts.fail(scale, std::string("is present, but the weights are stored as ") +
                              dtype_name(weight->dtype));
    return nullptr;
  }
  const std::string part = packed ? *words : "weight";
  if (packed && weight) parts.fail(part, "is stored as well as weight; delete one of them");
  std::vector<std::string> names = names_of(name);
  // The name in the file goes first.
  names.insert(names.begin(), linear_of(find(name + "." + part)->stored_name));
  const QuantisedConfig::Rule* rule = quantisation_->rule_of_stored(names);
  if (!rule || !rule->scheme)
    parts.fail(part, "is quantised, but " + quantisation_->file() +
                         (rule ? " says that it is not (" + rule->key + ")"
                               : std::string(" has no target for it")));
  return std::make_unique<StoredLinear>(read_stored_linear(parts, *rule->scheme, out, in));
}

std::unique_ptr<StoredLinear> Weights::quantised_slice(const std::string& name,
                                                       const LinearSlice& slice) {
  auto linear = quantised_linear(name, slice.out, slice.in);
  if (linear && !slice.is_whole()) *linear = linear->part(slice.has);
  return linear;
}

bool Weights::serves_integers(const StoredLinear& linear, int64_t in) const {
  return !plain_ && linear.form && ops::Weight::holds_groups(linear.form->group, in, device_);
}

void Weights::round_inputs(const std::string& name, const StoredLinear& quantised, LinearPart part,
                           ops::Weight& weight) {
  const Parts parts(*this, name);
  const char* const stored = parts.has(kWords[0]) ? kWords[0] : "weight";
  if (plain_)
    parts.fail(stored,
               "is of a linear whose inputs are rounded (input_activations): adapters cannot be "
               "trained on it");
  // Here the reference uses one scale for all tokens of a picture.
  if (part == LinearPart::kOther)
    parts.fail(stored,
               "is of a linear outside the decoder whose inputs are rounded (input_activations), "
               "which is not supported");
  rounds_inputs_ = true;
  weight.set_input_rounding(*quantised.input_rounding);
}

std::optional<ops::Quantisation> Weights::quantisation(LinearPart part) const {
  if (!rounding_.weights || part == LinearPart::kOther) return std::nullopt;
  return part == LinearPart::kDecoder ? *rounding_.weights : ops::Quantisation{.bits = 8};
}

std::optional<ops::Weight> Weights::integer_linear(const std::string& name,
                                                   const StoredLinear* stored,
                                                   const LinearSlice& slice, const at::Tensor& bias,
                                                   LinearPart part) {
  const int64_t inputs = slice.has.in.size();
  const auto to = quantisation(part);
  if (plain_ || device_.is_meta() || (stored ? !serves_integers(*stored, inputs) : !to))
    return std::nullopt;
  keeps_integers_ = true;
  if (stored)
    return ops::Weight(*stored->integers, dtype_, device_, bias,
                       rounding_.inputs && !stored->input_rounding);
  const ops::QuantisedTensor integers = rounded(name, slice, *to);
  if (!ops::Weight::holds_groups(integers.group, integers.in(), device_))
    return ops::Weight(integers.decoded(), dtype_, device_, bias);
  return ops::Weight(integers, dtype_, device_, bias, rounding_.inputs);
}

ops::QuantisedTensor Weights::rounded(const std::string& name, const LinearSlice& slice,
                                      const ops::Quantisation& to) {
  const auto& [outs, ins] = slice.has;
  const at::Tensor w = rows_of(floats(name + ".weight", {slice.out, slice.in}), outs);
  try {
    ops::QuantisedTensor integers = ops::quantise(w, to);
    if (slice.is_whole()) return integers;
    // As on one rank, where groups may extend beyond this part.
    return integers.part({0, outs.size()}, {ins.begin, ins.end});
  } catch (const c10::Error& e) {
    throw LoadError(unprocessable(
        dir_ + ": tensor " + find(name + ".weight")->stored_name + " " + e.msg(), dir_));
  }
}

at::Tensor Weights::decoded(const StoredLinear& linear, const LinearSlice& slice,
                            at::Device device) const {
  const auto options = at::TensorOptions().dtype(dtype_).device(device);
  return device.is_meta() ? at::empty({slice.out, slice.in}, options)
                          : linear.decoded().to(options);
}

void Weights::skip_zero_bias(const std::string& name) {
  const Entry* entry = find(name + ".bias");
  if (entry && scalar_type(entry->view.dtype) && !stored(*entry).any().item<bool>())
    used_.insert(entry->stored_name);
}

std::string Weights::quantised_hint(const std::string& name) const {
  const std::string linear = linear_of(name);
  if (part_of(name) != "weight" || !has_linear(linear)) return "";
  return quantisation_ ? ": it is stored quantised, which is supported for linears alone"
                       : ": it is stored quantised, but config.json has no quantization_config";
}

std::optional<QuantisedReport> Weights::quantised() const {
  return is_quantised() ? std::optional(quantised_) : std::nullopt;
}

}  // namespace valora::models
