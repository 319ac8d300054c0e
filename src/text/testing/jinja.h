// Templates rendered in one call, for tests.
#pragma once

#include <string>

#include "text/jinja/interpreter.h"
#include "text/jinja/parser.h"
#include "text/jinja/value_json.h"

namespace valora::text::testing {

inline Result<std::string> render(std::string_view source, const Json& variables = Json::object()) {
  VALORA_TRY(parsed, jinja::parse(source));
  jinja::Runtime runtime;
  jinja::Variables values;
  for (const auto& [name, json] : variables.items()) {
    VALORA_TRY(value, jinja::from_json(runtime.budget, json));
    values[name] = std::move(value);
  }
  return jinja::render(parsed, runtime, values);
}

// The message of the failure; empty where there is none.
inline std::string failure(std::string_view source, const Json& variables = Json::object()) {
  const auto rendered = render(source, variables);
  return rendered.ok() ? std::string() : rendered.error().message;
}

}  // namespace valora::text::testing
