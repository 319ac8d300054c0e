#include "engine/adapter_store.h"

#include <algorithm>

namespace valora {
namespace {

std::vector<ops::LoraShape> shapes_of(const adapters::AdapterSpec& spec) {
  std::vector<ops::LoraShape> shapes;
  for (const adapters::LoraTarget& target : spec.targets)
    shapes.push_back(
        {target.module, target.rank, target.a.shape[1], target.b.shape[0], target.scale});
  return shapes;
}

Error changed(const std::string& path) {
  return {ErrorCode::kConflict,
          "the adapter in " + path + " has changed since it was loaded; load it again", path};
}

}  // namespace

Result<AdapterStore::Stored> AdapterStore::add(const adapters::AdapterSpec& spec) {
  VALORA_TRY(layout, ops::PanelLayout::make(shapes_of(spec), dtype_, block_bytes_));
  const memory::AdapterNeed need{spec.digest, layout.blocks()};
  const std::lock_guard lock(mutex_);
  drop_unused();
  Entry& entry = entries_[spec.digest];
  std::erase(entry.paths, spec.path);
  entry.paths.push_back(spec.path);
  std::shared_ptr<ops::AdapterWeights> weights = entry.weights.lock();
  if (!weights) {
    weights = std::make_shared<ops::AdapterWeights>(modules_.modules().size(), std::move(layout));
    if (!entry.blocks.empty()) weights->place(entry.blocks);
    entry.weights = weights;
  }
  return Stored{need, std::move(weights)};
}

// Content in the pool stays known, because it may be loaded again before it leaves.
void AdapterStore::drop_unused() {
  std::erase_if(entries_, [](const auto& entry) {
    return entry.second.weights.expired() && entry.second.blocks.empty();
  });
}

Status AdapterStore::read(const Digest& digest, std::span<std::byte* const> blocks) const {
  std::shared_ptr<const ops::AdapterWeights> weights;
  std::vector<std::string> paths;
  {
    const std::lock_guard lock(mutex_);
    const auto it = entries_.find(digest);
    if (it != entries_.end()) weights = it->second.weights.lock();
    if (!weights) return Error{ErrorCode::kCancelled, "the adapter was unloaded", {}};
    paths = it->second.paths;
  }
  Status status;
  for (auto path = paths.rbegin(); path != paths.rend(); ++path) {
    const auto spec = adapters::read_adapter(*path, modules_, limits_);
    status = !spec.ok()               ? Status(spec.error())
             : spec->digest != digest ? Status(changed(*path))
                                      : Status();
    if (!status.ok()) continue;
    for (size_t i = 0; i < spec->targets.size(); ++i)
      weights->layout()->write(i, spec->targets[i].a, spec->targets[i].b, blocks);
    return {};
  }
  return status;
}

void AdapterStore::placed(const Digest& digest, std::vector<std::byte*> blocks) {
  const std::lock_guard lock(mutex_);
  const auto it = entries_.find(digest);
  if (it == entries_.end()) return;
  it->second.blocks = std::move(blocks);
  if (const auto weights = it->second.weights.lock()) weights->place(it->second.blocks);
}

void AdapterStore::displaced(const Digest& digest) {
  const std::lock_guard lock(mutex_);
  const auto it = entries_.find(digest);
  if (it == entries_.end()) return;
  it->second.blocks.clear();
  if (const auto weights = it->second.weights.lock()) weights->displace();
}

bool AdapterStore::resident(const Digest& digest) const {
  const std::lock_guard lock(mutex_);
  const auto it = entries_.find(digest);
  return it != entries_.end() && !it->second.blocks.empty();
}

}  // namespace valora
