// A schema whose compilation exceeds any time and memory limit, for tests.
#pragma once

#include <string>

#include "base/json/json.h"

namespace valora::grammar {

// title: makes it differ from others.
inline std::string endless_schema(const std::string& title = {}) {
  Json properties = Json::object();
  for (int i = 0; i < 300; ++i) properties["p" + std::to_string(i)] = {{"type", "integer"}};
  return Json{{"title", title},
              {"type", "object"},
              {"properties", properties},
              {"minProperties", 150},
              {"maxProperties", 160}}
      .dump();
}

}  // namespace valora::grammar
