#include "jinja/values/operators.h"

#include <cmath>

#include "jinja/builtins/arguments.h"
#include "jinja/values/format.h"
#include "jinja/values/slices.h"
#include "jinja/values/text_ops.h"

namespace valora::jinja {
namespace {

using Op = Binary::Op;

std::string_view sign_of(Op op) {
  switch (op) {
    case Op::kAdd: return "+";
    case Op::kSubtract: return "-";
    case Op::kMultiply: return "*";
    case Op::kDivide: return "/";
    case Op::kFloorDivide: return "//";
    case Op::kModulo: return "%";
    default: return "**";
  }
}

Error wrong_operands(Op op, const Value& left, const Value& right) {
  return fault("unsupported operand type(s) for " + std::string(sign_of(op)) + ": '" +
               std::string(type_name(left)) + "' and '" + std::string(type_name(right)) + "'");
}

Error overflow() { return fault("an integer does not fit in 64 bits"); }

Result<Value> integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) return fault("0.0 cannot be raised to a negative power");
    return Value(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) && __builtin_mul_overflow(result, base, &result)) return overflow();
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) return overflow();
  }
  return Value(result);
}

Result<Value> integers(Op op, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (op) {
    case Op::kAdd:
      if (__builtin_add_overflow(a, b, &result)) return overflow();
      return Value(result);
    case Op::kSubtract:
      if (__builtin_sub_overflow(a, b, &result)) return overflow();
      return Value(result);
    case Op::kMultiply:
      if (__builtin_mul_overflow(a, b, &result)) return overflow();
      return Value(result);
    case Op::kPower: return integer_power(a, b);
    default: break;
  }
  if (b == 0)
    return fault(op == Op::kDivide ? "division by zero" : "integer division or modulo by zero");
  if (op == Op::kDivide) return Value(static_cast<double>(a) / static_cast<double>(b));
  if (b == -1) {
    if (op == Op::kModulo) return Value(int64_t{0});
    if (a == INT64_MIN) return overflow();
    return Value(-a);
  }
  const int64_t remainder = a % b;
  const bool down =
      remainder != 0 && (remainder < 0) != (b < 0);  // Python rounds towards minus infinity
  if (op == Op::kModulo) return Value(down ? remainder + b : remainder);
  return Value(a / b - (down ? 1 : 0));
}

double modulo(double a, double b) {
  double result = std::fmod(a, b);
  if (result != 0 && (result < 0) != (b < 0)) result += b;
  return result == 0 ? std::copysign(0.0, b) : result;
}

Result<Value> floats(Op op, double a, double b) {
  switch (op) {
    case Op::kAdd: return Value(a + b);
    case Op::kSubtract: return Value(a - b);
    case Op::kMultiply: return Value(a * b);
    case Op::kPower: {
      if (a == 0 && b < 0) return fault("0.0 cannot be raised to a negative power");
      const double power = std::pow(a, b);
      if (std::isnan(power) && !std::isnan(a) && !std::isnan(b))
        return fault("complex numbers are not supported");
      if (std::isinf(power) && !std::isinf(a) && !std::isinf(b))
        return fault("Numerical result out of range");
      return Value(power);
    }
    default: break;
  }
  if (b == 0)
    return fault(op == Op::kDivide   ? "float division by zero"
                 : op == Op::kModulo ? "float modulo"
                                     : "float floor division by zero");
  if (op == Op::kDivide) return Value(a / b);
  if (op == Op::kModulo) return Value(modulo(a, b));
  // As in Python, computed from the remainder so that both are consistent.
  const double quotient = (a - modulo(a, b)) / b;
  if (quotient == 0) return Value(std::copysign(0.0, a / b));
  const double down = std::floor(quotient);
  return Value(quotient - down > 0.5 ? down + 1 : down);
}

Result<Value> add_strings(Budget& budget, const Value& left, const Value& right) {
  const Str &a = **left.as<StrPtr>(), &b = **right.as<StrPtr>();
  if (!a.markup && !b.markup) {
    VALORA_CHECK(budget.take_string(a.text.size() + b.text.size()));
    return make_string(budget, a.text + b.text);
  }
  // Text marked as safe stays safe: the other side is escaped.
  VALORA_TRY(first, escaped(budget, left));
  VALORA_TRY(second, escaped(budget, right));
  return make_string(budget, first.text() + second.text(), /*markup=*/true);
}

const Sequence* concatenable(const Value& value) {
  const auto* sequence = value.as<SequencePtr>();
  const bool is = sequence && ((*sequence)->kind == Sequence::Kind::kList ||
                               (*sequence)->kind == Sequence::Kind::kTuple);
  return is ? sequence->get() : nullptr;
}

Result<Value> add_sequences(Budget& budget, const Sequence& a, const Sequence& b) {
  VALORA_CHECK(budget.take((a.items.size() + b.items.size()) * sizeof(Value)));
  std::vector<Value> items = a.items;
  items.insert(items.end(), b.items.begin(), b.items.end());
  return make_sequence(budget, a.kind, std::move(items));
}

}  // namespace

Result<Value> apply(Budget& budget, Op op, const Value& left, const Value& right) {
  // "…" % undefined prints the value; any other use is a fault.
  if (left.is_undefined()) return undefined_fault(left);
  if (op == Op::kModulo && left.is_string()) return format_percent(budget, left.text(), right);
  if (right.is_undefined()) return undefined_fault(right);
  const auto ia = as_integer(left), ib = as_integer(right);
  if (ia && ib) return integers(op, *ia, *ib);
  const bool large_left = left.as<Large>() != nullptr, large_right = right.as<Large>() != nullptr;
  if ((large_left && (ib || large_right)) || (large_right && ia)) return overflow();
  const auto a = as_number(left), b = as_number(right);
  if (a && b) return floats(op, *a, *b);
  const Sequence *sa = concatenable(left), *sb = concatenable(right);
  if (op == Op::kAdd) {
    if (left.is_string() && right.is_string()) return add_strings(budget, left, right);
    if (left.is_string())
      return fault("can only concatenate str (not \"" + std::string(type_name(right)) +
                   "\") to str");
    if (sa && sb && sa->kind == sb->kind) return add_sequences(budget, *sa, *sb);
  }
  if (op == Op::kMultiply) {
    if ((left.is_string() || sa) && ib) return repeated(budget, left, *ib);
    if ((right.is_string() || sb) && ia) return repeated(budget, right, *ia);
  }
  return wrong_operands(op, left, right);
}

Result<Value> apply(Unary::Op op, const Value& operand) {
  if (op == Unary::Op::kNot) return Value(!truth(operand));
  if (operand.is_undefined()) return undefined_fault(operand);
  if (const auto integer = as_integer(operand)) {
    if (op == Unary::Op::kPlus) return Value(*integer);
    if (*integer == INT64_MIN) return overflow();
    return Value(-*integer);
  }
  if (operand.as<Large>()) return op == Unary::Op::kPlus ? Result<Value>(operand) : overflow();
  if (const auto* number = operand.as<double>())
    return Value(op == Unary::Op::kMinus ? -*number : *number);
  return fault("bad operand type for unary " + std::string(op == Unary::Op::kMinus ? "-" : "+") +
               ": '" + std::string(type_name(operand)) + "'");
}

}  // namespace valora::jinja
