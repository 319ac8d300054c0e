#include "base/text/percent.h"

#include <fmt/format.h>

namespace valora {

std::string percent_encoded(std::string_view text, std::string_view kept) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  std::string out;
  for (const char c : text)
    if (kPlain.find(c) != std::string_view::npos || kept.find(c) != std::string_view::npos)
      out += c;
    else
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  return out;
}

}  // namespace valora
