#include "base/tensors/gguf_types.h"

#include <algorithm>
#include <array>

namespace valora {
namespace {

constexpr std::array<GgufTypeEntry, 15> kGgufTypes{{{0, GgufType::kF32, {"F32", 1, 4}},
                                                    {1, GgufType::kF16, {"F16", 1, 2}},
                                                    {30, GgufType::kBF16, {"BF16", 1, 2}},
                                                    {2, GgufType::kQ4_0, {"Q4_0", 32, 18}},
                                                    {3, GgufType::kQ4_1, {"Q4_1", 32, 20}},
                                                    {6, GgufType::kQ5_0, {"Q5_0", 32, 22}},
                                                    {7, GgufType::kQ5_1, {"Q5_1", 32, 24}},
                                                    {8, GgufType::kQ8_0, {"Q8_0", 32, 34}},
                                                    {10, GgufType::kQ2_K, {"Q2_K", 256, 84}},
                                                    {11, GgufType::kQ3_K, {"Q3_K", 256, 110}},
                                                    {12, GgufType::kQ4_K, {"Q4_K", 256, 144}},
                                                    {13, GgufType::kQ5_K, {"Q5_K", 256, 176}},
                                                    {14, GgufType::kQ6_K, {"Q6_K", 256, 210}},
                                                    {20, GgufType::kIQ4_NL, {"IQ4_NL", 32, 18}},
                                                    {23, GgufType::kIQ4_XS, {"IQ4_XS", 256, 136}}}};

}  // namespace

size_t gguf_value_size(uint32_t type) {
  constexpr std::array<uint8_t, 13> kSizes{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return type < kSizes.size() ? kSizes[type] : 0;
}

const GgufTypeEntry* gguf_type(uint32_t number) {
  const auto* const found = std::ranges::find(kGgufTypes, number, &GgufTypeEntry::number);
  return found == kGgufTypes.end() ? nullptr : found;
}

const char* other_gguf_type(uint32_t number) {
  struct Named {
    uint32_t number;
    const char* name;
  };
  constexpr std::array<Named, 18> kOthers{{{9, "Q8_1"},
                                           {15, "Q8_K"},
                                           {16, "IQ2_XXS"},
                                           {17, "IQ2_XS"},
                                           {18, "IQ3_XXS"},
                                           {19, "IQ1_S"},
                                           {21, "IQ3_S"},
                                           {22, "IQ2_S"},
                                           {24, "I8"},
                                           {25, "I16"},
                                           {26, "I32"},
                                           {27, "I64"},
                                           {28, "F64"},
                                           {29, "IQ1_M"},
                                           {34, "TQ1_0"},
                                           {35, "TQ2_0"},
                                           {39, "MXFP4"},
                                           {40, "NVFP4"}}};
  const auto* found = std::ranges::find(kOthers, number, &Named::number);
  return found == kOthers.end() ? nullptr : found->name;
}

double gguf_number(uint32_t type, const uint8_t* at) {
  switch (type) {
    case gguf::kU8: return *at;
    case gguf::kI8: return gguf_load<int8_t>(at);
    case gguf::kU16: return gguf_load<uint16_t>(at);
    case gguf::kI16: return gguf_load<int16_t>(at);
    case gguf::kU32: return gguf_load<uint32_t>(at);
    case gguf::kI32: return gguf_load<int32_t>(at);
    case gguf::kF32Value: return gguf_load<float>(at);
    case gguf::kFlag: return *at != 0;
    case gguf::kU64: return static_cast<double>(gguf_load<uint64_t>(at));
    case gguf::kI64: return static_cast<double>(gguf_load<int64_t>(at));
    default: return gguf_load<double>(at);
  }
}

const GgufBlock& block_of(GgufType type) {
  return std::ranges::find(kGgufTypes, type, &GgufTypeEntry::type)->block;
}

}  // namespace valora
