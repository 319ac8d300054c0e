// Assignment to names, namespaces and tuples.
#include "jinja/interpreter_state.h"
#include "jinja/values/access.h"

namespace valora::jinja {

// The values assigned to the target, as one value.
Result<Value> Interpreter::target_value(const Target& target) {
  if (!target.tuple) return resolve(target.name);
  std::vector<Value> parts;
  for (const Target& part : target.parts) {
    VALORA_TRY(value, target_value(part));
    parts.push_back(std::move(value));
  }
  return make_sequence(runtime_.budget, Sequence::Kind::kTuple, std::move(parts));
}

Status Interpreter::assign(const Target& target, const Value& value) {
  if (target.tuple) return assign_parts(target.parts, value);
  if (target.attribute.empty()) {
    scope_->set(target.name, value);
    return {};
  }
  const Value object = resolve(target.name);
  const auto* space = object.as<NamespacePtr>();
  if (!space) return fault("cannot assign attribute on non-namespace object");
  (*space)->set(target.attribute, value);
  return {};
}

Status Interpreter::assign_parts(const std::vector<Target>& targets, const Value& value) {
  if (value.is_undefined())
    return fault("not enough values to unpack (expected " + std::to_string(targets.size()) +
                 ", got 0)");
  VALORA_TRY(items, items_of(runtime_.budget, value));
  const std::string expected = "values to unpack (expected " + std::to_string(targets.size());
  if (items.size() > targets.size()) return fault("too many " + expected + ")");
  if (items.size() < targets.size())
    return fault("not enough " + expected + ", got " + std::to_string(items.size()) + ")");
  for (size_t i = 0; i < targets.size(); ++i) VALORA_CHECK(assign(targets[i], items[i]));
  return {};
}

}  // namespace valora::jinja
