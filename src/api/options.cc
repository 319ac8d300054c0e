#include "api/options.h"

#include <algorithm>
#include <span>
#include <string_view>

namespace valora {
namespace {

template <typename T>
struct Named {
  std::string_view name;
  T value;
};

constexpr Named<ComputeDtype> kDtypes[] = {{"auto", ComputeDtype::kAuto},
                                           {"float32", ComputeDtype::kFloat32},
                                           {"bfloat16", ComputeDtype::kBFloat16},
                                           {"float16", ComputeDtype::kFloat16},
                                           // vLLM's other names
                                           {"half", ComputeDtype::kFloat16},
                                           {"float", ComputeDtype::kFloat32}};
constexpr Named<Quantization> kQuantizations[] = {
    {"none", Quantization::kNone}, {"int8", Quantization::kInt8}, {"int4", Quantization::kInt4}};
constexpr Named<Activations> kActivations[] = {{"auto", Activations::kAuto},
                                               {"int8", Activations::kInt8}};
constexpr Named<KvCacheDtype> kKvCacheDtypes[] = {
    {"auto", KvCacheDtype::kAuto}, {"int8", KvCacheDtype::kInt8}, {"fp8", KvCacheDtype::kFp8}};
constexpr Named<DeviceKind> kDevices[] = {{"cpu", DeviceKind::kCpu}, {"cuda", DeviceKind::kCuda}};
constexpr Named<KernelBackend> kKernels[] = {{"native", KernelBackend::kNative},
                                             {"reference", KernelBackend::kReference}};
constexpr Named<MergePlace> kMergePlaces[] = {{"shadow", MergePlace::kShadow},
                                              {"inplace", MergePlace::kInPlace}};
constexpr Named<JsonSpacing> kSpacings[] = {{"bounded", JsonSpacing::kBounded},
                                            {"compact", JsonSpacing::kCompact},
                                            {"free", JsonSpacing::kFree}};

constexpr Named<ReasoningParser> kReasoningParsers[] = {
    {"auto", ReasoningParser::kAuto},
    {"none", ReasoningParser::kNone},
    {"qwen3", ReasoningParser::kQwen3},
    {"deepseek_r1", ReasoningParser::kDeepseekR1},
    {"mistral", ReasoningParser::kMistral}};

// Returns "a, b or c".
template <typename T, size_t N>
std::string list_names(const Named<T> (&table)[N]) {
  std::string names;
  for (size_t i = 0; i < N; ++i) {
    if (i > 0) names += i + 1 < N ? ", " : " or ";
    names += table[i].name;
  }
  return names;
}

template <typename T, size_t N>
Result<T> parse(const Named<T> (&table)[N], const std::string& option, const std::string& param,
                const std::string& name) {
  const auto found = std::ranges::find(table, name, &Named<T>::name);
  if (found != std::end(table)) return found->value;
  return invalid(option + " \"" + name + "\" is unknown; use " + list_names(table), param);
}

template <typename T>
std::string find_name(std::span<const Named<T>> table, T value) {
  return std::string(std::ranges::find(table, value, &Named<T>::value)->name);
}

}  // namespace

Result<ComputeDtype> parse_dtype(const std::string& name) {
  if (name == "float") return ComputeDtype::kFloat32;
  if (name == "half") return ComputeDtype::kFloat16;
  return parse(kDtypes, "dtype", "dtype", name);
}

Result<Quantization> parse_quantization(const std::string& name) {
  if (name == "None") return Quantization::kNone;  // vLLM's spelling
  for (const std::string_view stored : {"awq", "gptq", "compressed-tensors", "fp8", "bitsandbytes"})
    if (name.starts_with(stored))
      return invalid("--quantization " + name +
                         ": leave it out; the config.json of a quantised folder says how its "
                         "weights are stored. For others there are int8 and int4",
                     "quantization");
  return parse(kQuantizations, "--quantization", "quantization", name);
}

Result<Activations> parse_activations(const std::string& name) {
  return parse(kActivations, "--activations", "activations", name);
}

Result<KvCacheDtype> parse_kv_cache_dtype(const std::string& name) {
  if (name == "fp8_e4m3") return KvCacheDtype::kFp8;  // vLLM's other name
  return parse(kKvCacheDtypes, "--kv-cache-dtype", "kv_cache_dtype", name);
}

Result<DeviceKind> parse_device(const std::string& name) {
  return parse(kDevices, "device", "device", name);
}

Result<KernelBackend> parse_kernels(const std::string& name) {
  return parse(kKernels, "--kernels", "kernels", name);
}

Result<MergePlace> parse_merge_place(const std::string& name) {
  return parse(kMergePlaces, "--merge", "merge", name);
}

Result<JsonSpacing> parse_json_spacing(const std::string& name) {
  return parse(kSpacings, "--json-whitespace", "json_whitespace", name);
}

Result<ReasoningParser> parse_reasoning_parser(const std::string& name) {
  return parse(kReasoningParsers, "--reasoning-parser", "reasoning_parser", name);
}

std::string name_of(ComputeDtype dtype) { return find_name<ComputeDtype>(kDtypes, dtype); }
std::string name_of(Quantization quantization) {
  return find_name<Quantization>(kQuantizations, quantization);
}
std::string name_of(Activations activations) {
  return find_name<Activations>(kActivations, activations);
}
std::string name_of(KvCacheDtype dtype) { return find_name<KvCacheDtype>(kKvCacheDtypes, dtype); }
std::string name_of(DeviceKind device) { return find_name<DeviceKind>(kDevices, device); }
std::string name_of(KernelBackend kernels) { return find_name<KernelBackend>(kKernels, kernels); }
std::string name_of(MergePlace place) { return find_name<MergePlace>(kMergePlaces, place); }
std::string name_of(JsonSpacing spacing) { return find_name<JsonSpacing>(kSpacings, spacing); }
std::string name_of(ReasoningParser parser) {
  return find_name<ReasoningParser>(kReasoningParsers, parser);
}

}  // namespace valora
