#include "jinja/builtins/builtins.h"

namespace valora::jinja {
namespace {

FilterFunction find_filter(std::string_view name) {
  for (const auto find : {text_filter, number_filter, sequence_filter, order_filter, select_filter})
    if (const FilterFunction found = find(name)) return found;
  return nullptr;
}

}  // namespace

bool is_filter(std::string_view name) { return find_filter(name) != nullptr; }

Result<Value> apply_filter(Runtime& runtime, const std::string& name, const Value& subject,
                           CallArgs args) {
  VALORA_CHECK(runtime.budget.step());
  const FilterFunction filter = find_filter(name);
  if (!filter) return fault("the filter '" + name + "' is not supported");
  return filter(runtime, subject, std::move(args));
}

}  // namespace valora::jinja
