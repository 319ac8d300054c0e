#include "jinja/syntax/expression_parser.h"

#include <array>

#include "base/text/strings.h"
#include "jinja/builtins/builtins.h"
#include "jinja/runtime.h"

namespace valora::jinja {
namespace {

struct Nested {
  explicit Nested(int& count) : count(count) { ++count; }
  ~Nested() { --count; }
  int& count;
};

Error too_deep(int line) {
  return syntax_error(
      line, "an expression nests deeper than " + std::to_string(kMaxExpressionDepth) + " levels");
}

}  // namespace

// Refuses nodes nested deeper than the interpreter's limit.
Result<ExprPtr> ExpressionParser::make(int line, Expr::Node node) {
  auto expr = std::make_unique<Expr>(Expr{line, std::move(node)});
  each_part(*expr, [&](const Expr& part) { expr->depth = std::max(expr->depth, part.depth + 1); });
  if (expr->depth > kMaxExpressionDepth) return too_deep(line);
  return expr;
}

Result<ExprPtr> ExpressionParser::expression(bool with_conditional) {
  const Nested nested(nesting_);
  if (nesting_ > kMaxExpressionDepth) return too_deep(tokens_.line());
  return with_conditional ? conditional() : logical_or();
}

Result<ExprPtr> ExpressionParser::tuple(bool with_conditional, std::string_view end_name) {
  const int line = tokens_.line();
  const auto ended = [&] {
    return tokens_.at(TokenKind::kOutputEnd) || tokens_.at(TokenKind::kTagEnd) ||
           tokens_.at_operator(")") || (!end_name.empty() && tokens_.at_name(end_name));
  };
  SequenceLiteral items{true, {}};
  for (bool comma = false;;) {
    if (ended()) break;
    VALORA_TRY(item, expression(with_conditional));
    if (!comma && !tokens_.at_operator(",")) return item;
    items.items.push_back(std::move(item));
    if (!tokens_.skip_operator(",")) break;
    comma = true;
  }
  if (items.items.empty()) return tokens_.unexpected("an expression");
  return make(line, std::move(items));
}

Result<ExprPtr> ExpressionParser::conditional() {
  const int line = tokens_.line();
  VALORA_TRY(then, logical_or());
  while (tokens_.skip_name("if")) {
    VALORA_TRY(condition, logical_or());
    ExprPtr otherwise;
    if (tokens_.skip_name("else")) {
      VALORA_TRY(last, expression());
      otherwise = std::move(last);
    }
    VALORA_TRY(
        node, make(line, Conditional{std::move(condition), std::move(then), std::move(otherwise)}));
    then = std::move(node);
  }
  return then;
}

Result<ExprPtr> ExpressionParser::logical_or() {
  VALORA_TRY(left, logical_and());
  while (tokens_.at_name("or")) {
    const int line = tokens_.take().line;
    VALORA_TRY(right, logical_and());
    VALORA_TRY(node, make(line, Binary{Binary::Op::kOr, std::move(left), std::move(right)}));
    left = std::move(node);
  }
  return left;
}

Result<ExprPtr> ExpressionParser::logical_and() {
  VALORA_TRY(left, logical_not());
  while (tokens_.at_name("and")) {
    const int line = tokens_.take().line;
    VALORA_TRY(right, logical_not());
    VALORA_TRY(node, make(line, Binary{Binary::Op::kAnd, std::move(left), std::move(right)}));
    left = std::move(node);
  }
  return left;
}

Result<ExprPtr> ExpressionParser::logical_not() {
  if (!tokens_.at_name("not")) return compare();
  const Nested nested(nesting_);
  if (nesting_ > kMaxExpressionDepth) return too_deep(tokens_.line());
  const int line = tokens_.take().line;
  VALORA_TRY(operand, logical_not());
  return make(line, Unary{Unary::Op::kNot, std::move(operand)});
}

Result<bool> ExpressionParser::compare_operator(Compare::Op& op) {
  static constexpr std::array<std::pair<std::string_view, Compare::Op>, 6> kSigns = {
      {{"==", Compare::Op::kEqual},
       {"!=", Compare::Op::kNotEqual},
       {"<=", Compare::Op::kLessEqual},
       {">=", Compare::Op::kGreaterEqual},
       {"<", Compare::Op::kLess},
       {">", Compare::Op::kGreater}}};
  for (const auto& [text, sign] : kSigns) {
    if (!tokens_.skip_operator(text)) continue;
    op = sign;
    return true;
  }
  if (tokens_.skip_name("in")) {
    op = Compare::Op::kIn;
    return true;
  }
  if (tokens_.at_name("not") && tokens_.ahead().kind == TokenKind::kName &&
      tokens_.ahead().text == "in") {
    tokens_.skip(2);
    op = Compare::Op::kNotIn;
    return true;
  }
  return false;
}

Result<ExprPtr> ExpressionParser::compare() {
  const int line = tokens_.line();
  VALORA_TRY(first, sum());
  Compare compare{std::move(first), {}};
  for (;;) {
    Compare::Op op;
    VALORA_TRY(found, compare_operator(op));
    if (!found) break;
    VALORA_TRY(operand, sum());
    compare.rest.emplace_back(op, std::move(operand));
  }
  if (compare.rest.empty()) return std::move(compare.first);
  return make(line, std::move(compare));
}

Result<ExprPtr> ExpressionParser::left_associative(Parse operand,
                                                   std::initializer_list<OperatorOf> operators) {
  VALORA_TRY(left, (this->*operand)());
  for (;;) {
    const auto found = std::ranges::find_if(
        operators, [&](const OperatorOf& o) { return tokens_.at_operator(o.text); });
    if (found == operators.end()) return left;
    const int line = tokens_.take().line;
    VALORA_TRY(right, (this->*operand)());
    VALORA_TRY(node, make(line, Binary{found->op, std::move(left), std::move(right)}));
    left = std::move(node);
  }
}

Result<ExprPtr> ExpressionParser::sum() {
  return left_associative(&ExpressionParser::concat,
                          {{"+", Binary::Op::kAdd}, {"-", Binary::Op::kSubtract}});
}

Result<ExprPtr> ExpressionParser::concat() {
  const int line = tokens_.line();
  VALORA_TRY(first, product());
  if (!tokens_.at_operator("~")) return first;
  Concat concat;
  concat.parts.push_back(std::move(first));
  while (tokens_.skip_operator("~")) {
    VALORA_TRY(part, product());
    concat.parts.push_back(std::move(part));
  }
  return make(line, std::move(concat));
}

Result<ExprPtr> ExpressionParser::product() {
  return left_associative(&ExpressionParser::power, {{"*", Binary::Op::kMultiply},
                                                     {"/", Binary::Op::kDivide},
                                                     {"//", Binary::Op::kFloorDivide},
                                                     {"%", Binary::Op::kModulo}});
}

Result<ExprPtr> ExpressionParser::power() {
  return left_associative(&ExpressionParser::filtered_unary, {{"**", Binary::Op::kPower}});
}

Result<ExprPtr> ExpressionParser::unary(bool with_filters) {
  const Nested nested(nesting_);
  if (nesting_ > kMaxExpressionDepth) return too_deep(tokens_.line());
  const int line = tokens_.line();
  ExprPtr expr;
  if (tokens_.at_operator("-") || tokens_.at_operator("+")) {
    const auto op = tokens_.take().text == "-" ? Unary::Op::kMinus : Unary::Op::kPlus;
    VALORA_TRY(operand, unary(false));
    VALORA_TRY(node, make(line, Unary{op, std::move(operand)}));
    expr = std::move(node);
  } else {
    VALORA_TRY(node, primary());
    expr = std::move(node);
  }
  VALORA_TRY(complete, postfix(std::move(expr)));
  if (!with_filters) return complete;
  return filters(std::move(complete));
}

Result<ExprPtr> ExpressionParser::primary() {
  const int line = tokens_.line();
  if (tokens_.at(TokenKind::kName)) return name();
  if (tokens_.at(TokenKind::kString)) return string();
  if (tokens_.at(TokenKind::kInteger)) return make(line, Literal{tokens_.take().integer});
  if (tokens_.at(TokenKind::kFloat)) return make(line, Literal{tokens_.take().number});
  if (tokens_.skip_operator("(")) return parenthesized();
  if (tokens_.skip_operator("[")) return list();
  if (tokens_.skip_operator("{")) return dict();
  return tokens_.unexpected("an expression");
}

Result<ExprPtr> ExpressionParser::name() {
  const Token token = tokens_.take();
  if (token.text == "true" || token.text == "True") return make(token.line, Literal{true});
  if (token.text == "false" || token.text == "False") return make(token.line, Literal{false});
  if (token.text == "none" || token.text == "None") return make(token.line, Literal{None{}});
  if (is_unsupported_global(token.text))
    return syntax_error(token.line, quoted(token.text) + " is not supported");
  return make(token.line, Name{token.text});
}

Result<ExprPtr> ExpressionParser::string() {
  const int line = tokens_.line();
  std::string text;
  while (tokens_.at(TokenKind::kString)) text += tokens_.take().text;
  return make(line, Literal{literal_string(std::move(text))});
}

Result<ExprPtr> ExpressionParser::parenthesized() {
  const int line = tokens_.line();
  if (tokens_.skip_operator(")")) return make(line, SequenceLiteral{true, {}});
  VALORA_TRY(inner, tuple());
  VALORA_CHECK(tokens_.expect_operator(")"));
  return inner;
}

Result<ExprPtr> ExpressionParser::list() {
  const int line = tokens_.line();
  SequenceLiteral items;
  while (!tokens_.at_operator("]")) {
    VALORA_TRY(item, expression());
    items.items.push_back(std::move(item));
    if (!tokens_.skip_operator(",")) break;
  }
  VALORA_CHECK(tokens_.expect_operator("]"));
  return make(line, std::move(items));
}

Result<ExprPtr> ExpressionParser::dict() {
  const int line = tokens_.line();
  DictLiteral dict;
  while (!tokens_.at_operator("}")) {
    VALORA_TRY(key, expression());
    VALORA_CHECK(tokens_.expect_operator(":"));
    VALORA_TRY(value, expression());
    dict.entries.emplace_back(std::move(key), std::move(value));
    if (!tokens_.skip_operator(",")) break;
  }
  VALORA_CHECK(tokens_.expect_operator("}"));
  return make(line, std::move(dict));
}

}  // namespace valora::jinja
