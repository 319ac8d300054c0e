#include "jinja/values/operators.h"

#include <algorithm>
#include <cmath>

#include "jinja/builtins/arguments.h"
#include "jinja/values/access.h"

namespace valora::jinja {
namespace {

bool numbers_equal(const Value& a, const Value& b) {
  const auto ia = as_integer(a), ib = as_integer(b);
  if (ia && ib) return *ia == *ib;
  const auto *la = a.as<Large>(), *lb = b.as<Large>();
  if (la && lb) return *la == *lb;
  if (la || lb) {
    const double other = *as_number(la ? b : a);  // exact, as in Python
    return other >= 0 && other < 0x1p64 && other == std::floor(other) &&
           static_cast<uint64_t>(other) == (la ? la : lb)->value;
  }
  return *as_number(a) == *as_number(b);
}

// Ranges compare by content, iterators by identity.
bool comparable(const Sequence& a, const Sequence& b) {
  return a.kind == b.kind && a.kind != Sequence::Kind::kIterator &&
         a.kind != Sequence::Kind::kValues;
}

Result<bool> sequences_equal(Budget& budget, const Sequence& a, const Sequence& b) {
  if (!comparable(a, b)) return &a == &b;
  if (a.items.size() != b.items.size()) return false;
  for (size_t i = 0; i < a.items.size(); ++i) {
    VALORA_TRY(same, equal(budget, a.items[i], b.items[i]));
    if (!same) return false;
  }
  return true;
}

Result<bool> dicts_equal(Budget& budget, const Dict& a, const Dict& b) {
  if (a.entries().size() != b.entries().size()) return false;
  for (const auto& [key, value] : a.entries()) {
    const Value* other = b.find(key);
    if (!other) return false;
    VALORA_TRY(same, equal(budget, value, *other));
    if (!same) return false;
  }
  return true;
}

Error no_order(const Value& a, const Value& b, std::string_view sign) {
  return fault("'" + std::string(sign) + "' not supported between instances of '" +
               std::string(type_name(a)) + "' and '" + std::string(type_name(b)) + "'");
}

template <typename T>
int sign_of(const T& a, const T& b) {
  return a < b ? -1 : a > b ? 1 : a == b ? 0 : 2;
}

Result<int> order_sequences(Budget& budget, const Sequence& a, const Sequence& b,
                            std::string_view sign) {
  const size_t shorter = std::min(a.items.size(), b.items.size());
  for (size_t i = 0; i < shorter; ++i) {
    VALORA_TRY(same, equal(budget, a.items[i], b.items[i]));
    if (!same) return order(budget, a.items[i], b.items[i], sign);
  }
  return sign_of(a.items.size(), b.items.size());
}

const Sequence* ordered_sequence(const Value& value) {
  const auto* sequence = value.as<SequencePtr>();
  if (!sequence ||
      ((*sequence)->kind != Sequence::Kind::kList && (*sequence)->kind != Sequence::Kind::kTuple))
    return nullptr;
  return sequence->get();
}

}  // namespace

bool same_object(const Value& a, const Value& b) {
  if (a.data().index() != b.data().index()) return false;
  return std::visit(
      [&](const auto& x) {
        using T = std::decay_t<decltype(x)>;
        const T& y = *b.as<T>();
        if constexpr (std::is_same_v<T, None>)
          return true;
        else if constexpr (std::is_same_v<T, Undefined>)
          return x.why == y.why;
        else if constexpr (std::is_same_v<T, StrPtr>)
          return x->text == y->text;
        else
          return x == y;
      },
      a.data());
}

bool same_key(const Value& a, const Value& b) {
  if (as_number(a) && as_number(b)) return numbers_equal(a, b);
  if (a.is_undefined() && b.is_undefined()) return true;
  const auto *sa = a.as<SequencePtr>(), *sb = b.as<SequencePtr>();
  if (sa && sb)
    return (*sa)->kind == (*sb)->kind && std::ranges::equal((*sa)->items, (*sb)->items, same_key);
  return same_object(a, b);
}

Result<bool> equal(Budget& budget, const Value& a, const Value& b) {
  VALORA_CHECK(budget.step());
  if (as_number(a) && as_number(b)) return numbers_equal(a, b);
  if (a.data().index() != b.data().index()) return false;
  if (a.is_undefined()) return true;
  if (a.is_string()) {
    if (a.text().size() != b.text().size()) return false;
    VALORA_CHECK(budget.look_at(a.text().size()));
    return a.text() == b.text();
  }
  if (const auto* sequence = a.as<SequencePtr>())
    return sequences_equal(budget, **sequence, **b.as<SequencePtr>());
  if (const auto* dict = a.as<DictPtr>()) return dicts_equal(budget, **dict, **b.as<DictPtr>());
  return same_object(a, b);
}

Result<int> order(Budget& budget, const Value& a, const Value& b, std::string_view sign) {
  VALORA_CHECK(budget.step());
  if (a.is_undefined()) return undefined_fault(a);
  if (b.is_undefined()) return undefined_fault(b);
  const auto ia = as_integer(a), ib = as_integer(b);
  if (ia && ib) return sign_of(*ia, *ib);
  const auto *la = a.as<Large>(), *lb = b.as<Large>();
  if (la && lb) return sign_of(la->value, lb->value);
  if ((la && ib) || (ia && lb)) return la ? 1 : -1;
  if (as_number(a) && as_number(b)) return sign_of(*as_number(a), *as_number(b));
  if (a.is_string() && b.is_string()) {
    VALORA_CHECK(budget.look_at(std::min(a.text().size(), b.text().size())));
    return sign_of(a.text(), b.text());  // the byte order of UTF-8 is the order of code points
  }
  const Sequence *sa = ordered_sequence(a), *sb = ordered_sequence(b);
  if (sa && sb && sa->kind == sb->kind) return order_sequences(budget, *sa, *sb, sign);
  return no_order(a, b, sign);
}

Result<bool> contains(Budget& budget, const Value& container, const Value& item) {
  if (container.is_string()) {
    if (!item.is_string())
      return fault("'in <string>' requires string as left operand, not " +
                   std::string(type_name(item)));
    VALORA_CHECK(budget.look_at(container.text().size()));
    return container.text().find(item.text()) != std::string::npos;
  }
  if (const auto* dict = container.as<DictPtr>()) {
    if (!hashable(item)) return fault("unhashable type: '" + std::string(type_name(item)) + "'");
    if (item.is_string()) VALORA_CHECK(budget.look_at(item.text().size()));
    return (*dict)->find(item) != nullptr;
  }
  VALORA_TRY(iterator, Iterator::over(container));
  for (;;) {
    VALORA_TRY(next, iterator.next(budget));
    if (!next) return false;
    VALORA_TRY(same, equal(budget, *next, item));
    if (same) return true;
  }
}

}  // namespace valora::jinja
