#include "serving/sampling/answer_grammars.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/fault.h"

namespace valora::serving {
namespace {

constexpr int64_t kCompilationBytes = int64_t{512} << 20;

using Compiled = Result<std::shared_ptr<const grammar::CompiledGrammar>>;

grammar::GrammarSpec spec_of(const AnswerConstraint& constraint, const std::string& text,
                             JsonSpacing spacing) {
  using Kind = AnswerConstraint::Kind;
  switch (constraint.kind) {
    case Kind::kJsonSchema: return grammar::JsonSchemaSpec{text, constraint.strict, spacing};
    case Kind::kRegex: return grammar::RegexSpec{text};
    case Kind::kChoice: return grammar::ChoiceSpec{constraint.choices};
    case Kind::kEbnf: return grammar::EbnfSpec{text};
    case Kind::kStructuralTag: return grammar::StructuralTagSpec{text, spacing};
    case Kind::kJsonObject: return grammar::JsonObjectSpec{spacing};
    case Kind::kLabels:
    case Kind::kBoxes: break;  // already replaced by constraint_on_text()
  }
  return grammar::JsonObjectSpec{spacing};
}

// Compiles the constraint's text, or its substitute.
template <typename Compile>
auto compile_form(const AnswerConstraint& constraint, JsonSpacing spacing, Compile&& compile) {
  std::optional<Compiled> compiled = compile(spec_of(constraint, constraint.text, spacing));
  const bool refused =
      compiled && !compiled->ok() && compiled->error().code == ErrorCode::kInvalidArgument;
  if (refused && !constraint.fallback.empty())
    compiled = compile(spec_of(constraint, constraint.fallback, spacing));
  return compiled;
}

// The matcher of a form; errors name its field.
template <typename Compile>
std::optional<Result<grammar::GrammarMatcher>> start_form(const AnswerConstraint& constraint,
                                                          JsonSpacing spacing, Compile&& compile) {
  const auto named = [&](Error error) {
    error.param = constraint.param;
    return error;
  };
  try {
    const auto compiled = compile_form(constraint, spacing, compile);
    if (!compiled) return {};
    if (!compiled->ok()) return named(compiled->error());
    auto matcher = grammar::GrammarMatcher::start(**compiled);
    if (!matcher.ok()) return named(matcher.error());
    return matcher;
  } catch (const std::exception& e) {
    return named(fault("the form of the answer could not be prepared", e));
  }
}

}  // namespace

AnswerGrammars::AnswerGrammars(std::shared_ptr<const text::Tokenizer> tokenizer,
                               std::vector<int32_t> eos, int64_t vocabulary,
                               const FormLimits& limits)
    : tokenizer_(std::move(tokenizer)),
      eos_(std::move(eos)),
      vocabulary_(vocabulary),
      limits_(limits) {}

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
  compiler_ = std::make_unique<grammar::GrammarCompiler>(
      std::move(vocabulary),
      grammar::CompilerOptions{.limits = {kCompilationBytes, limits_.compilation},
                               .quick_seconds = limits_.quick});
  return *compiler_;
}

Result<grammar::GrammarMatcher> AnswerGrammars::start(const AnswerConstraint& constraint,
                                                      JsonSpacing spacing,
                                                      const std::stop_token& stop) {
  return *start_form(constraint, spacing, [&](const grammar::GrammarSpec& spec) {
    return std::optional<Compiled>(compiler().compile(spec, stop));
  });
}

std::optional<Result<grammar::GrammarMatcher>> AnswerGrammars::try_start(
    const AnswerConstraint& constraint, JsonSpacing spacing, const std::stop_token& stop) {
  return start_form(constraint, spacing, [&](const grammar::GrammarSpec& spec) {
    return compiler().try_compile(spec, stop);
  });
}

std::optional<Result<grammar::GrammarMatcher>> AnswerGrammars::start_cached(
    const AnswerConstraint& constraint, JsonSpacing spacing) {
  return start_form(constraint, spacing,
                    [&](const grammar::GrammarSpec& spec) { return compiler().cached(spec); });
}

grammar::GrammarCompiler::Stats AnswerGrammars::stats() { return compiler().stats(); }

Digest AnswerGrammars::digest_of(const AnswerConstraint& constraint, JsonSpacing spacing) {
  return DigestBuilder()
      .add(grammar::digest_of(spec_of(constraint, constraint.text, spacing)))
      .add(grammar::digest_of(spec_of(constraint, constraint.fallback, spacing)))
      .finish();
}

}  // namespace valora::serving
