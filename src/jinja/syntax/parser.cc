#include "jinja/interpreter.h"

#include <algorithm>
#include <array>
#include <initializer_list>

#include "base/text/strings.h"
#include "base/text/unicode.h"
#include "jinja/syntax/expression_parser.h"

namespace valora::jinja {
namespace {

constexpr std::array<std::string_view, 10> kUnsupportedTags = {
    "block", "extends", "include", "import", "from", "call", "print", "autoescape", "do", "trans"};

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  Result<Template> run() {
    VALORA_TRY(body, statements({}));
    return Template{std::move(body)};
  }

 private:
  using Ends = std::initializer_list<std::string_view>;

  // Parses up to a tag that begins with one of `ends`, without consuming its name, or to the end of
  // the template.
  Result<Body> statements(Ends ends) {
    Body body;
    for (;;) {
      const int line = tokens_.line();
      if (tokens_.at(TokenKind::kEnd)) {
        if (ends.size() == 0) return body;
        return syntax_error(line, "expected '" + std::string(*(ends.end() - 1)) +
                                      "', found the end of the template");
      }
      if (tokens_.at(TokenKind::kText)) {
        body.push_back({line, Text{tokens_.take().text}});
      } else if (tokens_.at(TokenKind::kOutputBegin)) {
        tokens_.skip();
        VALORA_TRY(value, expressions_.tuple());
        VALORA_CHECK(tokens_.expect(TokenKind::kOutputEnd, "'}}'"));
        body.push_back({line, Output{std::move(value)}});
      } else {
        tokens_.skip();
        if (std::ranges::any_of(ends, [&](std::string_view end) { return tokens_.at_name(end); }))
          return body;
        VALORA_TRY(statement, tag());
        VALORA_CHECK(tokens_.expect(TokenKind::kTagEnd, "'%}'"));
        body.push_back(std::move(statement));
      }
    }
  }

  // Parses the body of a block whose opening tag ends here.
  Result<Body> block(Ends ends) {
    tokens_.skip_operator(":");
    VALORA_CHECK(tokens_.expect(TokenKind::kTagEnd, "'%}'"));
    if (++depth_ > kMaxStatementDepth)
      return syntax_error(tokens_.line(), "blocks nest deeper than " +
                                              std::to_string(kMaxStatementDepth) + " levels");
    auto body = statements(ends);
    --depth_;
    return body;
  }

  // Parses a block and consumes its `end`.
  Result<Body> whole_block(std::string_view end) {
    VALORA_TRY(body, block({end}));
    tokens_.skip();
    return body;
  }

  Result<Statement> tag() {
    const int line = tokens_.line();
    VALORA_TRY(name, tokens_.expect_name("the name of a tag"));
    if (name == "if") return if_block(line);
    if (name == "for") return for_block(line);
    if (name == "set") return set(line);
    if (name == "macro") return macro(line);
    if (name == "filter") return filter_block(line);
    if (name == "with") return with(line);
    if (name == "generation") {
      VALORA_TRY(body, closed_block("endgeneration"));
      return Statement{line, Generation{std::move(body)}};
    }
    if (name == "break" || name == "continue") {
      if (loops_ == 0) return syntax_error(line, "'" + name + "' is outside a loop");
      if (name == "break") return Statement{line, Break{}};
      return Statement{line, Continue{}};
    }
    if (std::ranges::find(kUnsupportedTags, name) != kUnsupportedTags.end())
      return syntax_error(line, "the tag '" + name + "' is not supported");
    return syntax_error(line, "unexpected or unknown tag '" + shortened(name, 80) + "'");
  }

  Result<Statement> if_block(int line) {
    If node;
    for (;;) {
      VALORA_TRY(condition, expressions_.tuple(/*with_conditional=*/false));
      VALORA_TRY(body, block({"elif", "else", "endif"}));
      node.branches.emplace_back(std::move(condition), std::move(body));
      const std::string end = tokens_.take().text;
      if (end == "elif") continue;
      if (end == "else") {
        VALORA_TRY(otherwise, whole_block("endif"));
        node.otherwise = std::move(otherwise);
      }
      return Statement{line, std::move(node)};
    }
  }

  Result<Statement> for_block(int line) {
    For node;
    VALORA_TRY(target, assignment_target(/*with_attributes=*/false));
    node.target = std::move(target);
    if (!tokens_.skip_name("in")) return tokens_.unexpected("'in'");
    VALORA_TRY(iterable, expressions_.tuple(/*with_conditional=*/false, "recursive"));
    node.iterable = std::move(iterable);
    if (tokens_.skip_name("if")) {
      VALORA_TRY(condition, expressions_.expression());
      node.condition = std::move(condition);
    }
    if (tokens_.at_name("recursive"))
      return syntax_error(line, "recursive loops are not supported");
    ++loops_;
    VALORA_TRY(body, block({"else", "endfor"}));
    --loops_;
    node.body = std::move(body);
    if (tokens_.take().text == "else") {
      VALORA_TRY(otherwise, whole_block("endfor"));
      node.otherwise = std::move(otherwise);
    }
    return Statement{line, std::move(node)};
  }

  Result<Statement> set(int line) {
    VALORA_TRY(target, assignment_target(/*with_attributes=*/true));
    if (tokens_.skip_operator("=")) {
      VALORA_TRY(value, expressions_.tuple());
      return Statement{line, Set{std::move(target), std::move(value)}};
    }
    SetBlock node{std::move(target), nullptr, {}};
    if (node.target.tuple) return syntax_error(line, "a set block fills one variable");
    if (tokens_.skip_operator("|")) {
      VALORA_TRY(filter, expressions_.filter_chain());
      node.filter = std::move(filter);
    }
    VALORA_TRY(body, closed_block("endset"));
    node.body = std::move(body);
    return Statement{line, std::move(node)};
  }

  // Parses a block that produces separate text. Break and continue cannot leave it.
  Result<Body> closed_block(std::string_view end) {
    const int loops = std::exchange(loops_, 0);
    auto body = whole_block(end);
    loops_ = loops;
    return body;
  }

  Result<Statement> macro(int line) {
    Macro node;
    VALORA_TRY(name, tokens_.expect_name("the name of the macro"));
    node.name = std::move(name);
    VALORA_CHECK(tokens_.expect_operator("("));
    while (!tokens_.at_operator(")")) {
      VALORA_TRY(parameter, tokens_.expect_name("the name of a parameter"));
      ExprPtr value;
      if (tokens_.skip_operator("=")) {
        VALORA_TRY(default_value, expressions_.expression());
        value = std::move(default_value);
      } else if (!node.parameters.empty() && node.parameters.back().second) {
        return syntax_error(line, "a parameter without a default follows one with a default");
      }
      node.parameters.emplace_back(std::move(parameter), std::move(value));
      if (!tokens_.skip_operator(",")) break;
    }
    VALORA_CHECK(tokens_.expect_operator(")"));
    VALORA_TRY(body, closed_block("endmacro"));
    node.body = std::move(body);
    return Statement{line, std::move(node)};
  }

  Result<Statement> filter_block(int line) {
    VALORA_TRY(filter, expressions_.filter_chain());
    VALORA_TRY(body, whole_block("endfilter"));
    return Statement{line, FilterBlock{std::move(filter), std::move(body)}};
  }

  Result<Statement> with(int line) {
    With node;
    while (!tokens_.at(TokenKind::kTagEnd)) {
      VALORA_TRY(name, tokens_.expect_name("the name of a variable"));
      VALORA_CHECK(tokens_.expect_operator("="));
      VALORA_TRY(value, expressions_.expression());
      node.variables.emplace_back(std::move(name), std::move(value));
      if (!tokens_.skip_operator(",")) break;
    }
    VALORA_TRY(body, whole_block("endwith"));
    node.body = std::move(body);
    return Statement{line, std::move(node)};
  }

  Result<Target> assignment_target(bool with_attributes) {
    VALORA_TRY(first, one_target(with_attributes));
    if (!tokens_.at_operator(",")) return first;
    Target tuple;
    tuple.tuple = true;
    tuple.parts.push_back(std::move(first));
    while (tokens_.skip_operator(",")) {
      if (tokens_.at_name("in") || tokens_.at_operator("=") || tokens_.at_operator(")")) break;
      VALORA_TRY(part, one_target(with_attributes));
      tuple.parts.push_back(std::move(part));
    }
    return tuple;
  }

  Result<Target> one_target(bool with_attributes) {
    const int line = tokens_.line();
    if (tokens_.skip_operator("(")) {
      if (++depth_ > kMaxStatementDepth)
        return syntax_error(line, "the targets of an assignment nest too deep");
      auto inner = assignment_target(with_attributes);
      --depth_;
      if (!inner.ok()) return inner;
      VALORA_CHECK(tokens_.expect_operator(")"));
      return inner;
    }
    Target target;
    VALORA_TRY(name, tokens_.expect_name("a name to assign to"));
    static constexpr std::array<std::string_view, 6> kConstants = {"true", "false", "none",
                                                                   "True", "False", "None"};
    if (std::ranges::find(kConstants, name) != kConstants.end())
      return syntax_error(line, "can't assign to '" + name + "'");
    if (name == "loop") return syntax_error(line, "can't assign to the loop variable");
    target.name = std::move(name);
    if (with_attributes && tokens_.skip_operator(".")) {
      VALORA_TRY(attribute, tokens_.expect_name("the name of an attribute"));
      target.attribute = std::move(attribute);
    }
    return target;
  }

  TokenStream tokens_;
  ExpressionParser expressions_{tokens_};
  int depth_ = 0;
  int loops_ = 0;
};

}  // namespace

Result<Template> parse(std::string_view source) {
  if (source.size() > kMaxSourceBytes)
    return unprocessable("it is larger than " + std::to_string(kMaxSourceBytes >> 10) + " KiB");
  if (!is_valid_utf8(source)) return unprocessable("it is not UTF-8");
  VALORA_TRY(tokens, tokenize(source));
  return Parser(std::move(tokens)).run();
}

}  // namespace valora::jinja
