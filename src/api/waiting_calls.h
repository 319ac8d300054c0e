// Blocking versions of Engine::load_adapter(), unload_adapter() and pin_adapter(). Must not be
// called on an engine thread.
#pragma once

#include <future>
#include <utility>

#include "api/engine.h"

namespace valora {

inline Result<AdapterCard> load_adapter_sync(Engine& engine, LoadAdapter request) {
  std::promise<Result<AdapterCard>> loaded;
  engine.load_adapter(std::move(request),
                      [&](Result<AdapterCard> card) { loaded.set_value(std::move(card)); });
  return loaded.get_future().get();
}

inline Status unload_adapter_sync(Engine& engine, const std::string& name) {
  std::promise<Status> unloaded;
  engine.unload_adapter(name, std::nullopt,
                        [&](Status status) { unloaded.set_value(std::move(status)); });
  return unloaded.get_future().get();
}

inline Status pin_adapter_sync(Engine& engine, const std::string& name, bool pinned) {
  std::promise<Status> changed;
  engine.pin_adapter(name, pinned, std::nullopt,
                     [&](Status status) { changed.set_value(std::move(status)); });
  return changed.get_future().get();
}

}  // namespace valora
