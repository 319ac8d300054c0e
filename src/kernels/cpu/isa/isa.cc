#include "kernels/cpu/isa/isa.h"

#include <spdlog/spdlog.h>
#ifdef __aarch64__
#include <sys/auxv.h>
#elif defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <iterator>
#include <string>
#include <vector>

#include "kernels/cpu/isa/isa_kernels.h"

namespace valora::kernels {

// Each is in the source of its name, the only one compiled for its instructions: call it on CPUs
// that have them. add_… replace the kernels that these instructions make faster.
IsaKernels portable_kernels();
IsaKernels avx2_kernels();
IsaKernels avx512_kernels();  // without `bytes`
IsaKernels neon_kernels();
void add_avx512bf16(IsaKernels& kernels);
void add_vnni(IsaKernels& kernels);
void add_vbmi(IsaKernels& kernels);
void add_amx(IsaKernels& kernels);
void add_avxvnni(IsaKernels& kernels);
void add_neonbf16(IsaKernels& kernels);

namespace {

// An instruction set: a row of kEntries.
struct IsaEntry {
  Isa isa;
  std::string_view name;
  int tile_sums;
  bool (*supported)();
  IsaKernels (*kernels)();  // of a supported one
};

bool always() { return true; }
[[maybe_unused]] bool never() { return false; }

#ifdef __x86_64__
bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("f16c");
}
bool has_avxvnni() { return has_avx2() && __builtin_cpu_supports("avxvnni"); }
bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") && has_avx2();
}
bool has_avx512bf16() { return has_avx512() && __builtin_cpu_supports("avx512bf16"); }
bool has_vnni() { return __builtin_cpu_supports("avx512vnni"); }
bool has_vbmi() { return has_vnni() && __builtin_cpu_supports("avx512vbmi"); }
// The system saves tile registers only for processes that ask for them.
bool has_amx() {
  static const bool has = [] {
    constexpr int kRequestPermission = 0x1023, kTileData = 18;  // of Linux: ARCH_REQ_XCOMP_PERM
    return has_avx512bf16() && __builtin_cpu_supports("amx-tile") &&
           __builtin_cpu_supports("amx-bf16") && __builtin_cpu_supports("amx-int8") && has_vnni() &&
           syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  }();
  return has;
}

IsaKernels kernels_of_avxvnni() {
  IsaKernels kernels = avx2_kernels();
  add_avxvnni(kernels);
  return kernels;
}

IsaKernels kernels_of_avx512() {
  IsaKernels kernels = avx512_kernels();
  kernels.bytes = avx2_kernels().bytes;
  if (has_vnni()) add_vnni(kernels);
  return kernels;
}

IsaKernels kernels_of_avx512bf16() {
  IsaKernels kernels = kernels_of_avx512();
  add_avx512bf16(kernels);
  if (has_vbmi()) add_vbmi(kernels);
  return kernels;
}

IsaKernels kernels_of_amx() {
  IsaKernels kernels = kernels_of_avx512bf16();
  add_amx(kernels);
  return kernels;
}
#else
constexpr auto has_avx2 = never, has_avxvnni = never, has_avx512 = never, has_avx512bf16 = never,
               has_amx = never;
constexpr IsaKernels (*avx2_kernels)() = nullptr, (*kernels_of_avxvnni)() = nullptr,
                     (*kernels_of_avx512)() = nullptr, (*kernels_of_avx512bf16)() = nullptr,
                     (*kernels_of_amx)() = nullptr;
#endif

#ifdef __aarch64__
bool has_neon() {
  const unsigned long caps = getauxval(AT_HWCAP);
  return (caps & HWCAP_ASIMD) && (caps & HWCAP_ASIMDDP);
}
bool has_neonbf16() {
  const unsigned long caps = getauxval(AT_HWCAP2);
  return has_neon() && (caps & HWCAP2_BF16) && (caps & HWCAP2_I8MM);
}

IsaKernels kernels_of_neonbf16() {
  IsaKernels kernels = neon_kernels();
  add_neonbf16(kernels);
  return kernels;
}
#else
constexpr auto has_neon = never, has_neonbf16 = never;
constexpr IsaKernels (*neon_kernels)() = nullptr, (*kernels_of_neonbf16)() = nullptr;
#endif

// Best first. Tile files name all of them, whatever the CPU's architecture.
constexpr IsaEntry kEntries[] = {
    {Isa::kAmx, "amx", 24, has_amx, kernels_of_amx},
    {Isa::kAvx512Bf16, "avx512bf16", 24, has_avx512bf16, kernels_of_avx512bf16},
    {Isa::kAvx512, "avx512", 24, has_avx512, kernels_of_avx512},
    {Isa::kAvxVnni, "avxvnni", 5, has_avxvnni, kernels_of_avxvnni},
    {Isa::kAvx2, "avx2", 5, has_avx2, avx2_kernels},
    {Isa::kNeonBf16, "neonbf16", 6, has_neonbf16, kernels_of_neonbf16},
    {Isa::kNeon, "neon", 6, has_neon, neon_kernels},
    {Isa::kPortable, "portable", 3, always, portable_kernels},
};

std::string names(std::span<const Isa> isas) {
  std::string list;
  for (const Isa isa : isas) list += (list.empty() ? "" : ", ") + std::string(isa_name(isa));
  return list;
}

// The kernels of isa().
const IsaKernels& kernels() {
  static const auto all = [] {
    std::array<IsaKernels, std::size(kEntries)> tables{};
    for (const IsaEntry& entry : kEntries)
      if (entry.supported()) tables[static_cast<size_t>(entry.isa)] = entry.kernels();
    return tables;
  }();
  return all[static_cast<size_t>(isa())];
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

int tile_sums(Isa isa) { return std::ranges::find(kEntries, isa, &IsaEntry::isa)->tile_sums; }

std::string_view isa_name(Isa isa) {
  return std::ranges::find(kEntries, isa, &IsaEntry::isa)->name;
}

std::span<const Isa> all_isas() {
  static const std::vector<Isa> all = [] {
    std::vector<Isa> isas;
    for (const IsaEntry& entry : kEntries) isas.push_back(entry.isa);
    return isas;
  }();
  return all;
}

std::span<const Isa> supported_isas() {
  static const std::vector<Isa> supported = [] {
    std::vector<Isa> isas;
    for (const IsaEntry& entry : kEntries)
      if (entry.supported()) isas.push_back(entry.isa);
    return isas;
  }();
  return supported;
}

Result<Isa> choose_isa(std::string_view name, std::span<const Isa> supported) {
  if (name.empty()) return supported.front();
  for (Isa isa : supported)
    if (name == isa_name(isa)) return isa;
  for (const IsaEntry& entry : kEntries)
    if (name == entry.name)
      return invalid("VALORA_ISA=" + std::string(name) + ": this CPU does not have it, it has " +
                         names(supported),
                     "VALORA_ISA");
  return invalid("VALORA_ISA=" + std::string(name) + " is not one of " + names(all_isas()),
                 "VALORA_ISA");
}

Status select_isa() {
  VALORA_TRY(wanted, wanted_isa());
  set_isa(wanted);
  return {};
}

Isa isa() { return current().load(std::memory_order_relaxed); }

void set_isa(Isa isa) { current().store(isa, std::memory_order_relaxed); }

template <>
const KernelSet<bf16>& kernel_set() {
  return kernels().of_bf16;
}

template <>
const KernelSet<float>& kernel_set() {
  return kernels().of_float;
}

const ByteKernels& byte_kernels() { return kernels().bytes; }

bool fetches_near(int64_t rows, int sums) {
#ifdef __x86_64__
  static const bool faster = __builtin_cpu_is("intel") || !__builtin_cpu_supports("avx512f");
#else
  constexpr bool faster = false;
#endif
  return faster && 2 * rows <= sums;
}

const ByteFormatKernels& byte_attention(KvFormat format) {
  const ByteAttentionKernels& attention = kernels().byte_attention;
  return format == KvFormat::kInt8 ? attention.int8 : attention.fp8;
}

}  // namespace valora::kernels
