// Parses expressions in jinja2's order of precedence.
#pragma once

#include <string>
#include <string_view>

#include "jinja/syntax/ast.h"
#include "jinja/syntax/token_stream.h"

namespace valora::jinja {

class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& tokens) : tokens_(tokens) {}

  Result<ExprPtr> expression(bool with_conditional = true);
  // One expression, or a tuple of several separated by commas. Also stops before the name
  // `end_name`.
  Result<ExprPtr> tuple(bool with_conditional = true, std::string_view end_name = {});
  // name[(arguments)] and further filters after bars. The subject is null: the block's text.
  Result<ExprPtr> filter_chain();

 private:
  using Parse = Result<ExprPtr> (ExpressionParser::*)();
  Result<ExprPtr> make(int line, Expr::Node node);
  Result<ExprPtr> conditional();
  Result<ExprPtr> logical_or();
  Result<ExprPtr> logical_and();
  Result<ExprPtr> logical_not();
  Result<ExprPtr> compare();
  Result<ExprPtr> sum();
  Result<ExprPtr> concat();
  Result<ExprPtr> product();
  Result<ExprPtr> power();
  Result<ExprPtr> filtered_unary() { return unary(true); }
  Result<ExprPtr> unary(bool with_filters);
  Result<ExprPtr> primary();
  Result<ExprPtr> name();
  Result<ExprPtr> string();
  Result<ExprPtr> parenthesized();
  Result<ExprPtr> list();
  Result<ExprPtr> dict();
  Result<ExprPtr> postfix(ExprPtr object);
  Result<ExprPtr> filters(ExprPtr subject);
  Result<ExprPtr> filter(ExprPtr subject);
  Result<ExprPtr> test(ExprPtr subject);
  Result<ExprPtr> attribute(ExprPtr object);
  Result<ExprPtr> subscript(ExprPtr object);
  Result<ExprPtr> call(ExprPtr function);
  Result<Arguments> arguments();
  Status argument(Arguments& args);
  struct OperatorOf {
    std::string_view text;
    Binary::Op op;
  };
  Result<ExprPtr> left_associative(Parse operand, std::initializer_list<OperatorOf> operators);
  Result<bool> compare_operator(Compare::Op& op);

  TokenStream& tokens_;
  int nesting_ = 0;
};

}  // namespace valora::jinja
