#include "grammar/compiler.h"

#include <fmt/format.h>

#include <list>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "grammar/matcher.h"
#include "grammar/parts.h"
#include "grammar/schema/schema_rewrite.h"
#include "grammar/schema/shortest_answer.h"
#include "grammar/spec.h"

namespace valora::grammar {
namespace {

xgrammar::Grammar from_choices(const std::vector<std::string>& choices) {
  std::string text = "root ::= ";
  for (size_t i = 0; i < choices.size(); ++i)
    text += (i == 0 ? "" : " | ") + ebnf_literal(choices[i]);
  return xgrammar::Grammar::FromEBNF(text);
}

xgrammar::Grammar from_schema(const std::string& schema, bool strict, JsonSpacing spacing) {
  return xgrammar::Grammar::FromJSONSchema(schema, /*any_whitespace=*/true, std::nullopt,
                                           std::nullopt, strict, whitespace_of(spacing));
}

struct Builder {
  const xgrammar::TokenizerInfo& tokens;

  xgrammar::Grammar operator()(const JsonObjectSpec& spec) const {
    return from_schema(R"({"type": "object"})", false, spec.spacing);
  }
  xgrammar::Grammar operator()(const JsonSchemaSpec& spec) const {
    return from_schema(spec.schema, spec.strict, spec.spacing);
  }
  xgrammar::Grammar operator()(const RegexSpec& spec) const {
    return xgrammar::Grammar::FromRegex(spec.pattern);
  }
  xgrammar::Grammar operator()(const ChoiceSpec& spec) const { return from_choices(spec.choices); }
  xgrammar::Grammar operator()(const EbnfSpec& spec) const {
    return xgrammar::Grammar::FromEBNF(spec.text);
  }
  xgrammar::Grammar operator()(const StructuralTagSpec& spec) const {
    auto made = xgrammar::Grammar::FromStructuralTag(spec.json, tokens);
    if (auto* error = std::get_if<xgrammar::StructuralTagError>(&made))
      std::visit([](const auto& reason) { throw std::runtime_error(reason.what()); }, *error);
    return std::get<xgrammar::Grammar>(std::move(made));
  }
};

const char* name_of(const GrammarSpec& spec) {
  constexpr const char* kNames[] = {"the format",          "the schema",  "the regular expression",
                                    "the list of choices", "the grammar", "the structural tag"};
  return kNames[spec.index()];
}

// Of the shortest answer, in bytes. kInvalidArgument: an answer could not end.
Result<int64_t> length_of(const xgrammar::Grammar& grammar, const char* name) {
  const auto length = shortest_answer(grammar);
  if (!length.ok()) return invalid(fmt::format("{} {}", name, length.error().message));
  if (*length == kNoAnswer)
    return invalid(
        fmt::format("{} allows only endless answers: a rule, or a \"$ref\", always needs "
                    "itself again",
                    name));
  return *length;
}

using Shared = std::shared_ptr<const CompiledGrammar>;

// LRU cache keyed by content, with weighted values.
template <typename Value>
class Cache {
 public:
  explicit Cache(size_t capacity) : capacity_(capacity) {}

  const Value* find(const Digest& key) {
    const auto it = places_.find(key);
    if (it == places_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, it->second);
    return &it->second->value;
  }

  void insert(const Digest& key, Value value, size_t weight) {
    if (weight > capacity_ || places_.contains(key)) return;
    // The entry is complete before it is linked in, so that running out of memory changes nothing.
    std::list<Entry> added;
    added.push_front({key, std::move(value), weight});
    places_.emplace(key, added.begin());
    entries_.splice(entries_.begin(), added);
    weight_ += weight;
    while (weight_ > capacity_) {
      weight_ -= entries_.back().weight;
      places_.erase(entries_.back().key);
      entries_.pop_back();
    }
  }

  size_t size() const { return entries_.size(); }
  size_t weight() const { return weight_; }

 private:
  struct Entry {
    Digest key;
    Value value;
    size_t weight;
  };
  size_t capacity_, weight_ = 0;
  std::list<Entry> entries_;
  std::unordered_map<Digest, typename std::list<Entry>::iterator> places_;
};

}  // namespace

namespace {

bool has_surrogate(const std::string& bytes) {
  for (size_t i = 0; i + 1 < bytes.size(); ++i)
    if (bytes[i] == '\xED' && static_cast<unsigned char>(bytes[i + 1]) >= 0xA0) return true;
  return false;
}

std::shared_ptr<const TokenTable> table_of(Vocabulary vocabulary) {
  auto table = std::make_shared<TokenTable>();
  table->bytes = std::move(vocabulary.bytes);
  table->size = vocabulary.size;
  table->surrogates.resize((static_cast<size_t>(table->size) + 31) / 32);
  for (size_t id = 0; id < table->bytes.size(); ++id) {
    std::string& bytes = table->bytes[id];
    if (has_surrogate(bytes)) bytes.clear();
    const unsigned char first = bytes.empty() ? 0 : static_cast<unsigned char>(bytes.front());
    if (first >= 0xA0 && first <= 0xBF) table->surrogates[id / 32] |= uint32_t{1} << (id % 32);
  }
  return table;
}

}  // namespace

CompiledGrammar::CompiledGrammar(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
CompiledGrammar::~CompiledGrammar() = default;
size_t CompiledGrammar::bytes() const { return parts_->grammar.MemorySizeBytes(); }

// Compilations in a lane run one at a time.
struct Lane {
  Lane(const xgrammar::TokenizerInfo& tokens, BudgetLimits limits_)
      : limits(limits_), compiler(tokens, /*max_threads=*/1, /*cache_enabled=*/false) {}

  const BudgetLimits limits;
  std::mutex mutex;
  xgrammar::GrammarCompiler compiler;  // guarded by `mutex`
};

struct GrammarCompiler::State {
  State(Vocabulary vocabulary, const CompilerOptions& options)
      : table(table_of(std::move(vocabulary))),
        tokens(table->bytes, xgrammar::VocabType::RAW, table->size, std::vector<int32_t>{}),
        slow(tokens, options.limits),
        quick(tokens, {options.limits.bytes, options.quick_seconds}),
        made(options.cache_bytes),
        refused(options.refusals),
        long_ones(options.refusals) {}

  // The earlier result for the same description, if cached.
  std::optional<Result<Shared>> find(const Digest& key) {
    const std::lock_guard lock(mutex);
    const Shared* grammar = made.find(key);
    const Error* error = grammar == nullptr ? refused.find(key) : nullptr;
    if (grammar == nullptr && error == nullptr) return {};
    ++stats.hits;
    return grammar != nullptr ? Result<Shared>(*grammar) : Result<Shared>(*error);
  }

  void keep(const Digest& key, const Result<Shared>& result) {
    const std::lock_guard lock(mutex);
    if (result.ok()) {
      ++stats.compiled;
      made.insert(key, *result, (*result)->bytes());
    } else if (result.error().code == ErrorCode::kInvalidArgument) {
      ++stats.refused;
      refused.insert(key, result.error(), 1);
    } else if (result.error().code == ErrorCode::kCancelled) {
      ++stats.stopped;
    }
  }

  // True if an earlier compilation of this grammar exceeded the quick time.
  bool is_long(const Digest& key) {
    const std::lock_guard lock(mutex);
    return long_ones.find(key) != nullptr;
  }

  void note_long(const Digest& key) {
    const std::lock_guard lock(mutex);
    long_ones.insert(key, true, 1);
  }

  // Requires the lane's mutex.
  Result<Shared> build(Lane& lane, const GrammarSpec& spec, Spent& spent,
                       const std::stop_token& stop) {
    VALORA_CHECK(check(spec));
    {
      const std::lock_guard lock(mutex);
      ++stats.begun;
    }
    std::unique_ptr<CompiledGrammar::Parts> parts;
    Status fits;
    const auto compile = [&] {
      const auto ready = rewritten(spec);
      if (!ready.ok()) {
        fits = ready.error();
        return;
      }
      const xgrammar::Grammar grammar = std::visit(Builder{tokens}, *ready);
      const auto shortest = length_of(grammar, name_of(spec));
      if (!shortest.ok()) {
        fits = shortest.error();
        return;
      }
      parts = std::make_unique<CompiledGrammar::Parts>(
          CompiledGrammar::Parts{lane.compiler.CompileGrammar(grammar), table, *shortest});
    };
    VALORA_CHECK(guarded(lane.limits, name_of(spec), spent, compile, stop));
    if (!fits.ok()) return fits.error();
    const auto made = std::make_shared<const CompiledGrammar>(std::move(parts));
    const auto matcher = GrammarMatcher::start(made);
    if (!matcher.ok() && matcher.error().code == ErrorCode::kUnavailable) return matcher.error();
    if (!matcher.ok())
      return invalid(fmt::format("{} cannot be used: {}", name_of(spec), matcher.error().message));
    if (matcher->must_end())
      return invalid(fmt::format("{} allows only an empty answer", name_of(spec)));
    return made;
  }

  const std::shared_ptr<const TokenTable> table;
  xgrammar::TokenizerInfo tokens;
  Lane slow, quick;
  mutable std::mutex mutex;  // guards the members below
  Cache<Shared> made;
  Cache<Error> refused;
  Cache<bool> long_ones;
  Stats stats;
};

GrammarCompiler::GrammarCompiler(Vocabulary vocabulary, CompilerOptions options)
    : state_(std::make_unique<State>(std::move(vocabulary), options)) {}
GrammarCompiler::~GrammarCompiler() = default;

Result<Shared> GrammarCompiler::compile(const GrammarSpec& spec, const std::stop_token& stop) {
  const Digest key = digest_of(spec);
  if (auto known = state_->find(key)) return *std::move(known);
  const std::lock_guard alone(state_->slow.mutex);
  if (auto known = state_->find(key)) return *std::move(known);  // compiled while this call waited
  Spent spent;
  auto made = state_->build(state_->slow, spec, spent, stop);
  state_->keep(key, made);
  return made;
}

std::optional<Result<Shared>> GrammarCompiler::try_compile(const GrammarSpec& spec,
                                                           const std::stop_token& stop) {
  const Digest key = digest_of(spec);
  if (auto known = state_->find(key)) return known;
  if (state_->is_long(key)) return {};
  const std::lock_guard alone(state_->quick.mutex);
  if (auto known = state_->find(key)) return known;
  Spent spent;
  auto made = state_->build(state_->quick, spec, spent, stop);
  if (spent.out_of_time) {
    state_->note_long(key);
    return {};
  }
  state_->keep(key, made);
  return made;
}

std::optional<Result<Shared>> GrammarCompiler::cached(const GrammarSpec& spec) {
  return state_->find(digest_of(spec));
}

GrammarCompiler::Stats GrammarCompiler::stats() const {
  const std::lock_guard lock(state_->mutex);
  Stats stats = state_->stats;
  stats.entries = state_->made.size();
  stats.bytes = state_->made.weight();
  stats.refusals = state_->refused.size();
  return stats;
}

}  // namespace valora::grammar
