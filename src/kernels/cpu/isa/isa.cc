#include "kernels/cpu/isa/isa.h"

#include <spdlog/spdlog.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <vector>

namespace valora::kernels {
namespace {

constexpr Isa kAll[] = {Isa::kAvx512Bf16, Isa::kAvx512, Isa::kAvx2, Isa::kPortable};

bool cpu_has(Isa isa) {
#ifdef __x86_64__
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  switch (isa) {
    case Isa::kAvx512Bf16: return avx512 && __builtin_cpu_supports("avx512bf16");
    case Isa::kAvx512: return avx512;
    case Isa::kAvx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
             __builtin_cpu_supports("f16c");
    case Isa::kPortable: break;
  }
#endif
  return isa == Isa::kPortable;
}

std::string names(std::span<const Isa> isas) {
  std::string list;
  for (Isa isa : isas) list += (list.empty() ? "" : ", ") + std::string(isa_name(isa));
  return list;
}

Result<Isa> wanted_isa() {
  const char* name = std::getenv("VALORA_ISA");
  return choose_isa(name ? name : "", supported_isas());
}

Isa wanted_or_best() {
  const Result<Isa> wanted = wanted_isa();
  if (wanted.ok()) return *wanted;
  const Isa best = supported_isas().front();
  spdlog::warn("{}; {} is used", wanted.error().message, isa_name(best));
  return best;
}

std::atomic<Isa>& current() {
  static std::atomic<Isa> isa{wanted_or_best()};
  return isa;
}

}  // namespace

std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::kAvx512Bf16: return "avx512bf16";
    case Isa::kAvx512: return "avx512";
    case Isa::kAvx2: return "avx2";
    case Isa::kPortable: break;
  }
  return "portable";
}

std::span<const Isa> supported_isas() {
  static const std::vector<Isa> supported = [] {
    std::vector<Isa> isas;
    for (Isa isa : kAll)
      if (cpu_has(isa)) isas.push_back(isa);
    return isas;
  }();
  return supported;
}

Result<Isa> choose_isa(std::string_view name, std::span<const Isa> supported) {
  if (name.empty()) return supported.front();
  for (Isa isa : supported)
    if (name == isa_name(isa)) return isa;
  for (Isa isa : kAll)
    if (name == isa_name(isa))
      return invalid("VALORA_ISA=" + std::string(name) + ": this CPU does not have it, it has " +
                         names(supported),
                     "VALORA_ISA");
  return invalid("VALORA_ISA=" + std::string(name) + " is not one of " + names(kAll), "VALORA_ISA");
}

Status select_isa() {
  VALORA_TRY(wanted, wanted_isa());
  set_isa(wanted);
  return {};
}

Isa isa() { return current().load(std::memory_order_relaxed); }

void set_isa(Isa isa) { current().store(isa, std::memory_order_relaxed); }

}  // namespace valora::kernels
