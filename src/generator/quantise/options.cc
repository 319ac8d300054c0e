#include "generator/quantise/options.h"

namespace valora::generator {

std::string name_of(QuantiseScheme scheme) {
  switch (scheme) {
    case QuantiseScheme::kW4A16: return "W4A16";
    case QuantiseScheme::kW8A16: return "W8A16";
    case QuantiseScheme::kW8A8: return "W8A8";
  }
  return {};
}

Result<QuantiseScheme> parse_quantise_scheme(const std::string& name) {
  for (const QuantiseScheme scheme :
       {QuantiseScheme::kW4A16, QuantiseScheme::kW8A16, QuantiseScheme::kW8A8})
    if (name == name_of(scheme)) return scheme;
  return invalid("scheme \"" + name + "\" is unknown; use W4A16, W8A16 or W8A8", "scheme");
}

}  // namespace valora::generator
