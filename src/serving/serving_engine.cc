#include "serving/serving_engine.h"

#include <algorithm>

namespace valora::serving {

ServingEngine::ServingEngine(const EngineOptions& options, EngineParts parts, const Clock& clock)
    : options_(options),
      card_(std::move(parts.card)),
      cost_key_(std::move(parts.cost_key)),
      notes_(std::move(parts.notes)),
      model_(std::move(parts.model)),
      frontend_(std::move(parts.frontend)),
      requests_(options_.max_waiting),
      loop_(parts.core, std::move(parts.policy), *model_, *frontend_, requests_,
            options_.shares_cores, clock),
      adapters_(static_cast<size_t>(std::max(1, options_.max_loras)), parts.core.pool,
                model_->adapters(), *frontend_, loop_),
      intake_(options_, *frontend_, adapters_, requests_, loop_, clock),
      watch_(requests_, loop_, intake_, clock) {}

// Workers end first; the engine thread then ends the requests they have passed on. Callbacks of
// adapter workers may use the intake, so these workers end before it.
ServingEngine::~ServingEngine() {
  requests_.close(RequestTable::Closed::kShuttingDown);
  watch_.stop();
  adapters_.stop();
}

void ServingEngine::warm_up() {
  std::string note = loop_.ask([](EngineCore& core) { return core.warm_up(); });
  if (!note.empty()) notes_.push_back(std::move(note));
}

Result<std::vector<int32_t>> ServingEngine::tokenize(
    const Prompt& prompt, bool add_special_tokens, const std::vector<AdapterUse>& adapters) const {
  VALORA_TRY(uses, adapters_.applied(adapters));
  return frontend_->tokenize(prompt, add_special_tokens, uses);
}

Result<std::string> ServingEngine::detokenize(const std::vector<int32_t>& ids,
                                              const std::vector<AdapterUse>& adapters) const {
  if (ids.empty()) return std::string();
  VALORA_TRY(uses, adapters_.applied(adapters));
  VALORA_CHECK(frontend_->check(Prompt(ids), uses));
  return frontend_->language_of(uses).tokenizer->decode(ids, false);
}

EngineStats ServingEngine::stats() const {
  EngineStats stats = loop_.stats();
  stats.preparing = requests_.preparing();
  stats.stalls = watch_.stalls();
  const media::LoaderStats media = frontend_->media_stats();
  stats.media_queries = media.queries;
  stats.media_hits = media.hits;
  stats.media_bytes = media.bytes;
  stats.media_entries = media.entries;
  const AdapterBackend::HeadMemory heads = model_->adapters().head_memory();
  stats.memory.head_bytes = heads.bytes;
  stats.memory.head_limit = heads.limit;
  return stats;
}

std::string ServingEngine::check() {
  return loop_.ask([](EngineCore& core) { return core.check(); });
}

}  // namespace valora::serving
