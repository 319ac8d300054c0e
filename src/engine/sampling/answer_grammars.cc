#include "engine/sampling/answer_grammars.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/fault.h"

namespace valora {
namespace {

// With 150,000 tokens, a string of at least 300 characters takes 5 s.
constexpr grammar::CompilerOptions kOptions{.limits = {int64_t{512} << 20, 10}};

grammar::GrammarSpec spec_of(const AnswerConstraint& constraint, const std::string& text) {
  using Kind = AnswerConstraint::Kind;
  switch (constraint.kind) {
    case Kind::kJsonSchema: return grammar::JsonSchemaSpec{text, constraint.strict};
    case Kind::kRegex: return grammar::RegexSpec{text};
    case Kind::kChoice: return grammar::ChoiceSpec{constraint.choices};
    case Kind::kEbnf: return grammar::EbnfSpec{text};
    case Kind::kStructuralTag: return grammar::StructuralTagSpec{text};
    case Kind::kJsonObject: return grammar::JsonObjectSpec{};
    case Kind::kLabels:
    case Kind::kBoxes: break;  // constraint_on_text() has replaced them
  }
  return grammar::JsonObjectSpec{};
}

}  // namespace

AnswerGrammars::AnswerGrammars(std::shared_ptr<const text::Tokenizer> tokenizer,
                               std::vector<int32_t> eos, int64_t vocabulary)
    : tokenizer_(std::move(tokenizer)), eos_(std::move(eos)), vocabulary_(vocabulary) {}

grammar::GrammarCompiler& AnswerGrammars::compiler() {
  const std::lock_guard lock(mutex_);
  if (compiler_) return *compiler_;
  grammar::Vocabulary vocabulary;
  vocabulary.size = static_cast<int32_t>(vocabulary_);
  const int32_t known = std::min(tokenizer_->vocab_size(), vocabulary.size);
  for (int32_t id = 0; id < known; ++id) {
    const bool text = !tokenizer_->is_special(id) && std::ranges::find(eos_, id) == eos_.end();
    vocabulary.bytes.push_back(text ? tokenizer_->token_bytes(id) : std::string());
  }
  compiler_ = std::make_unique<grammar::GrammarCompiler>(std::move(vocabulary), kOptions);
  return *compiler_;
}

Result<grammar::GrammarMatcher> AnswerGrammars::start(const AnswerConstraint& constraint) {
  const auto named = [&](Error error) {
    error.param = constraint.param;
    return error;
  };
  try {
    auto compiled = compiler().compile(spec_of(constraint, constraint.text));
    if (!compiled.ok() && compiled.error().code == ErrorCode::kInvalidArgument &&
        !constraint.fallback.empty())
      compiled = compiler().compile(spec_of(constraint, constraint.fallback));
    if (!compiled.ok()) return named(compiled.error());
    auto matcher = grammar::GrammarMatcher::start(*compiled);
    if (!matcher.ok()) return named(matcher.error());
    return matcher;
  } catch (const std::exception& e) {
    return named(fault("the form of the answer could not be prepared", e));
  }
}

}  // namespace valora
