#include "jinja/values/value_json.h"

#include "base/text/unicode.h"

namespace valora::jinja {
namespace {

template <typename AnyJson>
Result<Value> value_of(Budget& budget, const AnyJson& json, int depth) {
  VALORA_CHECK(budget.step());
  if (depth > kMaxValueDepth)
    return fault("a value nests deeper than " + std::to_string(kMaxValueDepth) + " levels");
  switch (json.type()) {
    case AnyJson::value_t::boolean: return Value(json.template get<bool>());
    case AnyJson::value_t::number_integer: return Value(json.template get<int64_t>());
    case AnyJson::value_t::number_unsigned:
      if (const auto number = json.template get<uint64_t>();
          number > static_cast<uint64_t>(INT64_MAX))
        return Value(Large{number});
      return Value(json.template get<int64_t>());
    case AnyJson::value_t::number_float: return Value(json.template get<double>());
    case AnyJson::value_t::string:
      return make_string(budget, to_valid_utf8(json.template get_ref<const std::string&>()));
    case AnyJson::value_t::array: {
      std::vector<Value> items;
      for (const AnyJson& part : json) {
        VALORA_TRY(item, value_of(budget, part, depth + 1));
        items.push_back(std::move(item));
      }
      return make_list(budget, std::move(items));
    }
    case AnyJson::value_t::object: {
      std::vector<Dict::Entry> entries;
      for (const auto& [key, part] : json.items()) {
        VALORA_TRY(name, make_string(budget, to_valid_utf8(key)));
        VALORA_TRY(value, value_of(budget, part, depth + 1));
        entries.emplace_back(std::move(name), std::move(value));
      }
      return make_dict(budget, std::move(entries));
    }
    default: return Value(None{});
  }
}

}  // namespace

Result<Value> from_json(Budget& budget, const Json& json, int depth) {
  return value_of(budget, json, depth);
}

Result<Value> from_json(Budget& budget, const OrderedJson& json, int depth) {
  return value_of(budget, json, depth);
}

}  // namespace valora::jinja
