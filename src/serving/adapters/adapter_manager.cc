#include "serving/adapters/adapter_manager.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/fault.h"

namespace valora::serving {
namespace {

// Loads that read their files at the same time, each up to AdapterLimits::max_file_bytes.
constexpr int kAdaptersAtOnce = 4;

std::vector<memory::AdapterNeed> without(std::vector<memory::AdapterNeed> needs,
                                         const std::vector<Digest>& contents) {
  std::erase_if(needs, [&](const memory::AdapterNeed& need) {
    return std::ranges::find(contents, need.digest) != contents.end();
  });
  return needs;
}

}  // namespace

AdapterManager::AdapterManager(size_t max_adapters, const memory::PoolConfig& pool,
                               AdapterBackend& backend, const Frontend& frontend, EngineLoop& loop)
    : pool_(pool),
      backend_(backend),
      frontend_(frontend),
      loop_(loop),
      table_(max_adapters),
      workers_(std::make_unique<FairPool>(kAdaptersAtOnce, 1)) {}

void AdapterManager::stop() {
  stopping_ = true;
  workers_.reset();
}

std::vector<AdapterCard> AdapterManager::cards() const {
  std::vector<AdapterCard> cards = table_.cards();
  for (AdapterCard& card : cards) add_residency(card);
  return cards;
}

std::optional<AdapterCard> AdapterManager::card(const std::string& name) const {
  std::optional<AdapterCard> card = table_.card(name);
  if (card) add_residency(*card);
  return card;
}

void AdapterManager::add_residency(AdapterCard& card) const {
  if (card.place == WeightsPlace::kNone) return;
  const AdapterBackend::Residency residency = backend_.residency(card.digest);
  card.place = residency.place;
  card.last_load = residency.last_load;
}

Result<std::vector<AppliedAdapter>> AdapterManager::applied(
    const std::vector<AdapterUse>& uses) const {
  std::vector<AppliedAdapter> adapters;
  for (const AdapterUse& use : uses) {
    VALORA_TRY(served, table_.find(use.name));
    if (!std::isfinite(use.scale))
      return invalid("the scale of adapter " + use.name + " is not finite", "lora");
    adapters.push_back({served.adapter, use.scale, served.head, served.form});
  }
  return adapters;
}

void AdapterManager::load(LoadAdapter request, std::function<void(Result<AdapterCard>)> done) {
  const std::string key = request.name;
  workers_->post(key, 0, [this, request = std::move(request), done = std::move(done)] {
    done(try_load(request));
  });
}

void AdapterManager::unload(const std::string& name, std::optional<uint64_t> expected_generation,
                            std::function<void(Status)> done) {
  workers_->post(name, 0, [this, name, expected_generation, done = std::move(done)] {
    done(try_unload(name, expected_generation));
  });
}

void AdapterManager::pin(const std::string& name, bool pinned,
                         std::optional<uint64_t> expected_generation,
                         std::function<void(Status)> done) {
  workers_->post(name, 0, [this, name, pinned, expected_generation, done = std::move(done)] {
    done(try_pin(name, pinned, expected_generation));
  });
}

// ---- on the workers ----

Result<AdapterCard> AdapterManager::try_load(const LoadAdapter& request) {
  try {
    if (stopping_) return Error{ErrorCode::kCancelled, "the server was stopped", {}};
    return load_files(request);
  } catch (const std::exception& e) {
    return fault("an adapter could not be loaded", e);
  }
}

Result<AdapterCard> AdapterManager::load_files(const LoadAdapter& request) {
  VALORA_CHECK(table_.check(request));
  if (!request.same_as.empty()) return add_name(request);
  VALORA_TRY(read, backend_.read(request));
  VALORA_CHECK(check_room(*read.adapter));
  VALORA_TRY(language, frontend_.own_language(*read.spec));
  read.adapter->language = std::move(language);
  return serve(request, read);
}

Result<AdapterCard> AdapterManager::serve(const LoadAdapter& request,
                                          const AdapterBackend::Read& read) {
  const std::lock_guard changing(changing_);
  const std::shared_ptr<LoadedAdapter>& built = read.adapter;
  struct Undo {
    EngineLoop& loop;
    EngineCommands commands;
    ~Undo() {
      if (!commands.empty()) loop.hand_over(commands);
    }
  } undo{loop_, {}};
  Needs needs = built->needs();
  if (request.pinned) {
    for (const memory::AdapterNeed& need : needs) {
      EngineCommands unpin;
      unpin.emplace_back([need](EngineCore& core) { core.unpin(need); });
      VALORA_TRY(newly_pinned, pin_content(need));
      if (newly_pinned) undo.commands.splice(undo.commands.end(), unpin);
    }
  }
  VALORA_TRY(added, table_.add(request, read.spec, built));
  undo.commands.clear();
  // Nothing from here on can fail for lack of memory.
  forget(added.replaced);
  unpin_if_free(without(std::move(added.before), added.replaced));
  loop_.post_best_effort([built](EngineCore& core) { core.expect(*built); });
  if (!read.lazy)
    loop_.post_best_effort([needs = std::move(needs)](EngineCore& core) { core.expect(needs); });
  return std::move(added.card);
}

Result<AdapterCard> AdapterManager::add_name(const LoadAdapter& request) {
  const std::lock_guard changing(changing_);
  Needs needs;
  if (request.pinned) {
    VALORA_TRY(same, table_.needs_of_name(request.same_as, std::nullopt));
    needs = same;
    VALORA_CHECK(pin_all(needs));
  }
  Result<AdapterCard> card = table_.add_name(request);
  if (!card.ok()) unpin_if_free(needs);
  return card;
}

Status AdapterManager::try_unload(const std::string& name,
                                  std::optional<uint64_t> expected_generation) {
  try {
    const std::lock_guard changing(changing_);
    VALORA_TRY(removed, table_.remove(name, expected_generation));
    forget(removed.unused);
    unpin_if_free(without(std::move(removed.needs), removed.unused));
    return {};
  } catch (const std::exception& e) {
    return fault("an adapter could not be unloaded", e);
  }
}

void AdapterManager::forget(const std::vector<Digest>& contents) {
  for (const Digest& digest : contents)
    loop_.post_best_effort([digest](EngineCore& core) { core.forget_adapter(digest); });
}

Status AdapterManager::try_pin(const std::string& name, bool pinned,
                               std::optional<uint64_t> expected_generation) {
  try {
    const std::lock_guard changing(changing_);
    VALORA_TRY(needs, table_.needs_of_name(name, expected_generation));
    if (pinned) VALORA_CHECK(pin_all(needs));
    table_.set_pinned(name, pinned);  // the lock keeps the name in the table
    if (!pinned) unpin_if_free(needs);
    return {};
  } catch (const std::exception& e) {
    return fault("an adapter could not be pinned", e);
  }
}

// An adapter must leave room for some tokens of its requests.
Status AdapterManager::check_room(const LoadedAdapter& adapter) const {
  const int64_t most = pool_.adapter_blocks.value_or(pool_.blocks - 1) - pool_.kept_limit;
  int64_t blocks = 0;
  for (const memory::AdapterNeed& need : adapter.needs()) blocks += need.blocks;
  if (blocks <= most) return {};
  return unprocessable("the adapter takes " + std::to_string(blocks * pool_.block_bytes) +
                           " bytes, but adapters can have " +
                           std::to_string(most * pool_.block_bytes) +
                           " bytes of the pool; raise --pool-memory",
                       "lora_path");
}

// Waits for the engine thread, which knows what is already pinned.
Result<bool> AdapterManager::pin_content(const memory::AdapterNeed& need) {
  return loop_.ask([need](EngineCore& core) -> Result<bool> {
    try {
      return core.pin(need);
    } catch (const std::bad_alloc&) {
      return out_of_memory();
    }
  });
}

Status AdapterManager::pin_all(const Needs& needs) {
  for (const memory::AdapterNeed& need : needs) {
    const Result<bool> pinned = pin_content(need);
    if (pinned.ok()) continue;
    unpin_if_free(needs);
    return pinned.error();
  }
  return {};
}

// Names that share weights share their pin: it ends when no pinned name is left.
void AdapterManager::unpin_if_free(const Needs& needs) {
  for (const memory::AdapterNeed& need : needs)
    if (!table_.pins(need.digest))
      loop_.post_best_effort([need](EngineCore& core) { core.unpin(need); });
}

}  // namespace valora::serving
