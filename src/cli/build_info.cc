#include "cli/build_info.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/headeronly/version.h>

#include <cstdlib>
#include <string_view>
#include <vector>

#include "kernels/cpu/isa/isa.h"

namespace valora::cli {

std::string torch_version() { return TORCH_VERSION; }

std::string version_text() {
  std::vector<std::string_view> supported;
  for (const kernels::Isa isa : kernels::supported_isas()) supported.push_back(isa_name(isa));
  const char* wanted = std::getenv("VALORA_ISA");
  const auto chosen = kernels::choose_isa(wanted ? wanted : "", kernels::supported_isas());
  return fmt::format("valora {}\ncommit {}\ntorch {}\ninstruction set {}, of {}", VALORA_VERSION,
                     kCommit, torch_version(),
                     chosen.ok() ? std::string(isa_name(*chosen)) : chosen.error().message,
                     fmt::join(supported, ", "));
}

}  // namespace valora::cli
