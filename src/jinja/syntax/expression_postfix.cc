// Parses what follows an operand: attributes, subscripts, calls, filters and tests.
#include <array>

#include "base/text/strings.h"
#include "jinja/builtins/builtins.h"
#include "jinja/syntax/expression_parser.h"

namespace valora::jinja {
namespace {

// map, select and reject take the name of a filter or test. If it is a literal, it must be a known
// name.
Status check_named(int line, const std::string& filter, const Arguments& arguments) {
  const size_t at = filter == "map" || filter == "select" || filter == "reject" ? 0
                    : filter == "selectattr" || filter == "rejectattr"          ? 1
                                                                                : 2;
  if (at == 2 || arguments.positional.size() <= at) return {};
  const auto* literal = std::get_if<Literal>(&arguments.positional[at]->node);
  if (!literal || !literal->value.is_string()) return {};
  const std::string& name = literal->value.text();
  if (filter == "map" ? is_filter(name) : is_test(name)) return {};
  return syntax_error(
      line, (filter == "map" ? "the filter " : "the test ") + quoted(name) + " is not supported");
}

}  // namespace

Result<ExprPtr> ExpressionParser::postfix(ExprPtr object) {
  for (;;) {
    Result<ExprPtr> next = ExprPtr();
    if (tokens_.at_operator("."))
      next = attribute(std::move(object));
    else if (tokens_.at_operator("["))
      next = subscript(std::move(object));
    else if (tokens_.at_operator("("))
      next = call(std::move(object));
    else
      return object;
    if (!next.ok()) return next.error();
    object = std::move(*next);
  }
}

Result<ExprPtr> ExpressionParser::filters(ExprPtr subject) {
  for (;;) {
    Result<ExprPtr> next = ExprPtr();
    if (tokens_.skip_operator("|"))
      next = filter(std::move(subject));
    else if (tokens_.at_name("is"))
      next = test(std::move(subject));
    else if (tokens_.at_operator("("))
      next = call(std::move(subject));
    else
      return subject;
    if (!next.ok()) return next.error();
    subject = std::move(*next);
  }
}

Result<ExprPtr> ExpressionParser::filter_chain() {
  VALORA_TRY(chain, filter(nullptr));
  while (tokens_.skip_operator("|")) {
    VALORA_TRY(next, filter(std::move(chain)));
    chain = std::move(next);
  }
  return chain;
}

Result<ExprPtr> ExpressionParser::filter(ExprPtr subject) {
  const int line = tokens_.line();
  VALORA_TRY(name, tokens_.expect_name("the name of a filter"));
  if (!is_filter(name))
    return syntax_error(line, "the filter " + quoted(name) + " is not supported");
  Arguments args;
  if (tokens_.at_operator("(")) {
    VALORA_TRY(given, arguments());
    args = std::move(given);
  }
  VALORA_CHECK(check_named(line, name, args));
  return make(line, Filter{std::move(subject), std::move(name), std::move(args)});
}

Result<ExprPtr> ExpressionParser::test(ExprPtr subject) {
  const int line = tokens_.take().line;
  const bool negated = tokens_.skip_name("not");
  VALORA_TRY(name, tokens_.expect_name("the name of a test"));
  if (!is_test(name)) return syntax_error(line, "the test " + quoted(name) + " is not supported");
  Arguments args;
  if (tokens_.at_operator("(")) {
    VALORA_TRY(given, arguments());
    args = std::move(given);
  } else if (const TokenKind kind = tokens_.current().kind;
             kind == TokenKind::kString || kind == TokenKind::kInteger ||
             kind == TokenKind::kFloat || tokens_.at_operator("[") || tokens_.at_operator("{") ||
             (kind == TokenKind::kName && !tokens_.at_name("else") && !tokens_.at_name("or") &&
              !tokens_.at_name("and"))) {
    if (tokens_.at_name("is")) return syntax_error(line, "tests with 'is' cannot be chained");
    VALORA_TRY(argument, primary());
    VALORA_TRY(complete, postfix(std::move(argument)));
    args.positional.push_back(std::move(complete));
  }
  VALORA_TRY(node, make(line, Test{std::move(subject), std::move(name), std::move(args)}));
  if (!negated) return node;
  return make(line, Unary{Unary::Op::kNot, std::move(node)});
}

Result<ExprPtr> ExpressionParser::attribute(ExprPtr object) {
  const int line = tokens_.take().line;
  if (tokens_.at(TokenKind::kInteger)) {
    VALORA_TRY(key, make(line, Literal{tokens_.take().integer}));
    return make(line, Item{std::move(object), std::move(key)});
  }
  VALORA_TRY(name, tokens_.expect_name("a name or a number after '.'"));
  return make(line, Attribute{std::move(object), std::move(name)});
}

Result<ExprPtr> ExpressionParser::subscript(ExprPtr object) {
  const int line = tokens_.take().line;
  ExprPtr parts[3];
  bool is_slice = false;
  for (int i = 0; i < 3; ++i) {
    if (!tokens_.at_operator(":") && !tokens_.at_operator("]")) {
      VALORA_TRY(part, expression());
      parts[i] = std::move(part);
    }
    if (i == 2 || !tokens_.skip_operator(":")) break;
    is_slice = true;
  }
  if (tokens_.at_operator(","))
    return syntax_error(tokens_.line(), "a subscript with commas is not supported");
  VALORA_CHECK(tokens_.expect_operator("]"));
  if (is_slice)
    return make(line, Slice{std::move(object), std::move(parts[0]), std::move(parts[1]),
                            std::move(parts[2])});
  if (!parts[0]) return syntax_error(line, "a subscript is empty");
  return make(line, Item{std::move(object), std::move(parts[0])});
}

Result<ExprPtr> ExpressionParser::call(ExprPtr function) {
  const int line = tokens_.line();
  if (const auto* method = std::get_if<Attribute>(&function->node);
      method && is_unsupported_method(method->name))
    return syntax_error(line, "the method " + quoted(method->name) + " is not supported");
  VALORA_TRY(args, arguments());
  return make(line, Call{std::move(function), std::move(args)});
}

Result<Arguments> ExpressionParser::arguments() {
  VALORA_CHECK(tokens_.expect_operator("("));
  Arguments args;
  while (!tokens_.at_operator(")")) {
    if (args.unpacked_named) return syntax_error(tokens_.line(), "an argument follows '**'");
    VALORA_CHECK(argument(args));
    if (!tokens_.skip_operator(",")) break;
  }
  VALORA_CHECK(tokens_.expect_operator(")"));
  return args;
}

Status ExpressionParser::argument(Arguments& args) {
  const int line = tokens_.line();
  if (tokens_.at_operator("*") || tokens_.at_operator("**")) {
    ExprPtr& place = tokens_.take().text == "*" ? args.unpacked : args.unpacked_named;
    if (place) return syntax_error(line, "'*' is given twice");
    VALORA_TRY(value, expression());
    place = std::move(value);
    return {};
  }
  if (tokens_.at(TokenKind::kName) && tokens_.ahead().kind == TokenKind::kOperator &&
      tokens_.ahead().text == "=") {
    const std::string name = tokens_.take().text;
    tokens_.skip();
    VALORA_TRY(value, expression());
    if (std::ranges::find(args.named, name, [](const auto& named) -> const std::string& {
          return named.first;
        }) != args.named.end())
      return syntax_error(line, "the argument " + quoted(name) + " is given twice");
    args.named.emplace_back(name, std::move(value));
    return {};
  }
  if (!args.named.empty() || args.unpacked)
    return syntax_error(line, "an argument without a name follows one with a name or '*'");
  VALORA_TRY(value, expression());
  args.positional.push_back(std::move(value));
  return {};
}

}  // namespace valora::jinja
