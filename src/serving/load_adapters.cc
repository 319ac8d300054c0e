// Loads and unloads adapters, on the adapter workers.
#include <algorithm>
#include <future>

#include "base/fault.h"
#include "base/log/log.h"
#include "serving/serving_engine.h"

namespace valora::serving {
namespace {

std::vector<memory::AdapterNeed> without(std::vector<memory::AdapterNeed> needs,
                                         const std::vector<Digest>& contents) {
  std::erase_if(needs, [&](const memory::AdapterNeed& need) {
    return std::ranges::find(contents, need.digest) != contents.end();
  });
  return needs;
}

}  // namespace

Result<AdapterCard> ServingEngine::load_sync(const LoadAdapter& request) {
  VALORA_CHECK(adapters_.check(request));
  if (!request.same_as.empty()) return add_name(request);
  VALORA_TRY(read, model_->adapters().read(request));
  VALORA_CHECK(check_room(*read.adapter));
  VALORA_TRY(language, frontend_->own_language(*read.spec));
  read.adapter->language = std::move(language);
  return serve_adapter(request, read);
}

Result<AdapterCard> ServingEngine::serve_adapter(const LoadAdapter& request,
                                                 const AdapterBackend::Read& read) {
  const std::lock_guard changing(changing_adapters_);
  const std::shared_ptr<LoadedAdapter>& built = read.adapter;
  struct Undo {
    ServingEngine& engine;
    EngineCommands commands;
    ~Undo() {
      if (!commands.empty()) engine.hand_over(commands);
    }
  } undo{*this, {}};
  std::vector<memory::AdapterNeed> needs = built->needs();
  if (request.pinned) {
    for (const memory::AdapterNeed& need : needs) {
      EngineCommands unpin;
      unpin.emplace_back([need](EngineCore& core) { core.unpin(need); });
      VALORA_TRY(newly_pinned, pin(need));
      if (newly_pinned) undo.commands.splice(undo.commands.end(), unpin);
    }
  }
  VALORA_TRY(added, adapters_.add(request, read.spec, built));
  undo.commands.clear();
  // Nothing from here on can fail for lack of memory.
  forget(added.replaced);
  unpin_if_free(without(std::move(added.before), added.replaced));
  post_best_effort([built](EngineCore& core) { core.expect(*built); });
  if (!read.lazy)
    post_best_effort([needs = std::move(needs)](EngineCore& core) { core.expect(needs); });
  return std::move(added.card);
}

void ServingEngine::forget(const std::vector<Digest>& contents) {
  for (const Digest& digest : contents)
    post_best_effort([digest](EngineCore& core) { core.forget_adapter(digest); });
}

Result<AdapterCard> ServingEngine::add_name(const LoadAdapter& request) {
  const std::lock_guard changing(changing_adapters_);
  std::vector<memory::AdapterNeed> needs;
  if (request.pinned) {
    VALORA_TRY(same, adapters_.needs_of_name(request.same_as, std::nullopt));
    needs = same;
    VALORA_CHECK(pin_all(needs));
  }
  Result<AdapterCard> card = adapters_.add_name(request);
  if (!card.ok()) unpin_if_free(needs);
  return card;
}

// An adapter must leave room for some tokens of its requests.
Status ServingEngine::check_room(const LoadedAdapter& adapter) const {
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
Result<bool> ServingEngine::pin(const memory::AdapterNeed& need) {
  auto pinned = std::make_shared<std::promise<Result<bool>>>();
  auto answer = pinned->get_future();
  post([need, pinned](EngineCore& core) {
    try {
      pinned->set_value(core.pin(need));
    } catch (const std::bad_alloc&) {
      pinned->set_value(out_of_memory());
    }
  });
  return answer.get();
}

Status ServingEngine::pin_all(const std::vector<memory::AdapterNeed>& needs) {
  for (const memory::AdapterNeed& need : needs) {
    const Result<bool> pinned = pin(need);
    if (pinned.ok()) continue;
    unpin_if_free(needs);
    return pinned.error();
  }
  return {};
}

// Names that share weights share their pin: it ends when no pinned name is left.
void ServingEngine::unpin_if_free(const std::vector<memory::AdapterNeed>& needs) {
  for (const memory::AdapterNeed& need : needs)
    if (!adapters_.pins(need.digest))
      post_best_effort([need](EngineCore& core) { core.unpin(need); });
}

Status ServingEngine::try_pin(const std::string& name, bool pinned,
                              std::optional<uint64_t> expected_generation) {
  try {
    const std::lock_guard changing(changing_adapters_);
    VALORA_TRY(needs, adapters_.needs_of_name(name, expected_generation));
    if (pinned) VALORA_CHECK(pin_all(needs));
    adapters_.set_pinned(name, pinned);  // the lock keeps the name in the table
    if (!pinned) unpin_if_free(needs);
    return {};
  } catch (const std::exception& e) {
    return fault("an adapter could not be pinned", e);
  }
}

void ServingEngine::pin_adapter(std::string name, bool pinned,
                                std::optional<uint64_t> expected_generation,
                                std::function<void(Status)> done) {
  const std::string key = name;
  adapter_workers_->post(
      key, 0, [this, name = std::move(name), pinned, expected_generation, done = std::move(done)] {
        done(try_pin(name, pinned, expected_generation));
      });
}

Result<AdapterCard> ServingEngine::try_load(const LoadAdapter& request) {
  try {
    if (stopping_) return Error{ErrorCode::kCancelled, "the server was stopped", {}};
    return load_sync(request);
  } catch (const std::exception& e) {
    return fault("an adapter could not be loaded", e);
  }
}

void ServingEngine::load_adapter(LoadAdapter request,
                                 std::function<void(Result<AdapterCard>)> done) {
  const std::string key = request.name;
  adapter_workers_->post(key, 0, [this, request = std::move(request), done = std::move(done)] {
    done(try_load(request));
  });
}

void ServingEngine::unload_adapter(std::string name, std::optional<uint64_t> expected_generation,
                                   std::function<void(Status)> done) {
  const std::string key = name;
  adapter_workers_->post(
      key, 0, [this, name = std::move(name), expected_generation, done = std::move(done)] {
        done(try_unload(name, expected_generation));
      });
}

Status ServingEngine::try_unload(const std::string& name,
                                 std::optional<uint64_t> expected_generation) {
  try {
    const std::lock_guard changing(changing_adapters_);
    VALORA_TRY(removed, adapters_.remove(name, expected_generation));
    forget(removed.unused);
    unpin_if_free(without(std::move(removed.needs), removed.unused));
    return {};
  } catch (const std::exception& e) {
    return fault("an adapter could not be unloaded", e);
  }
}

}  // namespace valora::serving
