// The state of a rendering that functions, filters and tests use in addition to their arguments.
#pragma once

#include <chrono>
#include <functional>

#include "jinja/values/value.h"

namespace valora::jinja {

struct Runtime {
  Budget budget;
  std::function<std::chrono::system_clock::time_point()> now;
  bool raised = false;  // by raise_exception: the message comes from the template
  int evaluating = 0;   // active expressions, blocks and calls
  // Cleared at the end: only these values can contain themselves.
  std::vector<NamespacePtr> namespaces{};

  Runtime() = default;
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  ~Runtime() {
    for (const NamespacePtr& made : namespaces) std::exchange(made->attributes, {});
  }
};

// The global functions range, dict, namespace, raise_exception and strftime_now; null for other
// names.
CallablePtr find_global(std::string_view name);
// Names that jinja2 defines but this implementation does not. A template that uses one is refused.
bool is_unsupported_global(std::string_view name);

}  // namespace valora::jinja
