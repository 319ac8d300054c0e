#include "jinja/values/escape.h"

#include "jinja/values/format.h"

namespace valora::jinja {

Result<Value> escaped(Budget& budget, const Value& value) {
  if (const auto* string = value.as<StrPtr>(); string && (*string)->markup) return value;
  VALORA_TRY(text, to_text(budget, value));
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '\'': out += "&#39;"; break;
      case '"': out += "&#34;"; break;
      default: out += c;
    }
  }
  return make_string(budget, std::move(out), /*markup=*/true);
}

}  // namespace valora::jinja
