#include "server/handlers/adapters/adapter_resolver.h"

#include <fmt/format.h>

#include "base/files/input_folder.h"
#include "base/log/log.h"
#include "base/text/visible_text.h"
#include "server/base_names.h"

namespace valora::server {
namespace {

constexpr size_t kMaxNameBytes = 255;  // the limit for one path component

// A bad folder, or a full adapter table, is the fault of the request that names the adapter:
// retrying does not help, unless the folder is being written. Internal errors are the server's
// fault. Clients never learn where the folders are.
Error unloadable(const std::string& name, const std::string& directory, const Error& error) {
  const bool kept = error.code == ErrorCode::kInternal || error.code == ErrorCode::kConflict;
  std::string message = error.message;
  for (size_t at; (at = message.find(directory + "/")) != message.npos;)
    message.erase(at, directory.size() + 1);
  return {kept ? error.code : ErrorCode::kInvalidArgument,
          fmt::format("the adapter `{}` can't be loaded: {}", name, message), "model"};
}

bool folder_inside(const std::string& directory, const std::string& name) {
  const std::string path = directory + "/" + name;
  if (InputFolder::open({path, directory}).ok()) return true;
  if (InputFolder::open(path).ok())
    spdlog::warn("{} leads out of --lora-resolver-dir, so the adapter is not loaded", path);
  return false;
}

}  // namespace

bool safe_folder_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxNameBytes || name.front() == '.') return false;
  return name.find_first_of("/\\") == name.npos && !has_hidden_characters(name) &&
         !has_invisible_characters(name);
}

std::vector<std::string> AdapterResolver::missing(const std::vector<AdapterUse>& uses) const {
  std::vector<std::string> names;
  if (directory_.empty()) return names;
  for (const AdapterUse& use : uses) {
    if (!safe_folder_name(use.name) || !check_not_base_name(base_names_, use.name).ok() ||
        !folder_inside(directory_, use.name))
      continue;
    const auto card = engine_.adapter(use.name);
    if (!card || outdated(*card)) names.push_back(use.name);
  }
  return names;
}

std::optional<uint64_t> AdapterResolver::outdated(const AdapterCard& card) const {
  std::optional<Loaded> loaded;
  {
    const std::lock_guard lock(mutex_);
    const auto it = loaded_.find(card.name);
    if (it != loaded_.end() && it->second.generation == card.generation) loaded = it->second;
  }
  if (!loaded) return std::nullopt;
  const auto folder = InputFolder::open({directory_ + "/" + card.name, directory_});
  const bool same = !folder.ok() || loaded->files.check(*folder).ok();
  return same ? std::nullopt : std::optional(loaded->generation);
}

void AdapterResolver::load(std::vector<std::string> names, Done done) {
  if (names.empty()) return done({});
  const std::string name = std::move(names.back());
  names.pop_back();
  load_one(name, [self = shared_from_this(), names = std::move(names),
                  done = std::move(done)](const Status& status) {
    if (!status.ok()) return done(status);
    self->load(names, done);
  });
}

void AdapterResolver::load_one(const std::string& name, Done done) {
  {
    std::lock_guard lock(mutex_);
    std::vector<Done>& waiting = loading_[name];
    waiting.push_back(std::move(done));
    if (waiting.size() > 1) return;
  }
  read(name);
}

void AdapterResolver::read(const std::string& name) {
  LoadAdapter load{.name = name, .path = directory_ + "/" + name, .root = directory_};
  const auto before = engine_.adapter(name);
  if (before) load.expected_generation = outdated(*before);
  // Taken before the files are read: what changes later is not what was loaded.
  std::optional<FolderSnapshot> files;
  if (const auto folder = InputFolder::open({load.path, load.root}); folder.ok())
    files = FolderSnapshot::take(*folder, adapter_files());
  const std::optional<uint64_t> old = load.expected_generation;
  if (old) load.pinned = before->pinned;
  engine_.load_adapter(std::move(load), [self = shared_from_this(), name, old,
                                         files](const Result<AdapterCard>& card) {
    if (card.ok()) {
      if (files) {
        const std::lock_guard lock(self->mutex_);
        self->loaded_.insert_or_assign(name, Loaded{card->generation, *files});
      }
      return self->loaded(name, {});
    }
    const Error error = unloadable(name, self->directory_, card.error());
    if (!old) return self->loaded(name, error);
    // What was loaded is no longer what the folder has.
    self->engine_.unload_adapter(name, old,
                                 [self, name, error](const Status&) { self->loaded(name, error); });
  });
}

void AdapterResolver::loaded(const std::string& name, const Status& status) {
  std::vector<Done> waiting;
  {
    std::lock_guard lock(mutex_);
    waiting.swap(loading_[name]);
    loading_.erase(name);
  }
  for (const Done& done : waiting) done(status);
}

}  // namespace valora::server
