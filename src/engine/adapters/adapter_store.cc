#include "engine/adapters/adapter_store.h"

#include <algorithm>

#include "adapters/folder/adapter_parts.h"
#include "adapters/folder/read_at_rest.h"
#include "adapters/tensors/base_weights.h"
#include "base/log/log.h"
#include "engine/adapters/adapter_tensors.h"
#include "engine/adapters/value_range.h"
#include "engine/start/dtype.h"

namespace valora {
namespace {

constexpr size_t kMostKept = size_t{256} << 20;  // bytes of specs cached for a first read()

// The blocks of a rank that its panels occupy: another rank may need more.
std::span<std::byte* const> used(const std::vector<std::byte*>& blocks,
                                 const ops::AdapterWeights& weights) {
  return std::span(blocks).first(static_cast<size_t>(weights.layout()->blocks()));
}

void place(RankWeights& weights, const RankBlocks& blocks) {
  for (size_t rank = 0; rank < weights.size(); ++rank)
    weights[rank].place(used(blocks[rank], weights[rank]));
}

// An error for clients, who need not know where the adapter's folder is; the path goes to the log.
Error unreadable(const std::string& path, const Error& error) {
  spdlog::warn("the adapter in {} can no longer be read: {}", path, error.message);
  std::string message = error.message;
  for (size_t at = 0; (at = message.find(path, at)) != message.npos;) {
    const bool inside = message.compare(at + path.size(), 1, "/") == 0;
    message.erase(at, path.size() + (inside ? 1 : 0));
    if (inside) continue;
    constexpr std::string_view kInstead = "of this model";
    message.insert(at, kInstead);
    at += kInstead.size();
  }
  return {error.code, std::move(message), "model"};
}

Error changed(const std::string& path) {
  return {ErrorCode::kConflict,
          "adapter folder " + path + " has changed since it was loaded; load it again", path};
}

}  // namespace

Result<std::vector<ops::PanelLayout>> AdapterStore::layouts(
    const adapters::AdapterSpec& spec) const {
  std::vector<ops::PanelLayout> layouts;
  for (const RankShare& share : shares_) {
    VALORA_TRY(layout, ops::PanelLayout::make(share.shapes(spec), dtype_, block_bytes_, form_));
    layouts.push_back(std::move(layout));
  }
  return layouts;
}

void AdapterStore::write(const adapters::AdapterSpec& spec, const RankWeights& weights,
                         const RankBlocks& blocks) const {
  for (size_t rank = 0; rank < shares_.size(); ++rank)
    shares_[rank].write(spec, *weights[rank].layout(), used(blocks[rank], weights[rank]));
}

Result<AdapterStore::Stored> AdapterStore::add(
    const std::shared_ptr<const adapters::AdapterSpec>& spec) {
  VALORA_TRY(layouts, this->layouts(*spec));
  VALORA_TRY(part_layouts, this->part_layouts(*spec));
  const memory::AdapterNeed need{
      spec->digest, std::ranges::max_element(layouts, {}, &ops::PanelLayout::blocks)->blocks()};
  const bool has_values = spec->digest != spec->headers_digest;
  // Before locking, because it reads all values and the engine thread may want the lock.
  const auto merge_use = has_values ? merges_->use_of(*spec, modules_) : serving::MergeUse::kNever;
  const std::lock_guard lock(mutex_);
  if (entries_.size() >= sweep_at_ || kept_bytes_ + spec->bytes > kMostKept) drop_unused();
  Entry& entry = entries_[spec->digest];
  const FolderPath source(spec->path, spec->root);
  std::erase(entry.paths, source);
  entry.paths.push_back(source);
  entry.headers = spec->panels_headers_digest;
  if (has_values) {
    entry.content = spec->panels_digest;
    *entry.merge_use = merge_use;
  }
  if (has_values && !entry.kept && entry.blocks.empty() && kept_bytes_ + spec->bytes <= kMostKept) {
    entry.kept = spec;
    kept_bytes_ += spec->bytes;
  }
  std::shared_ptr<RankWeights> weights = entry.weights.lock();
  if (!weights) {
    weights = std::make_shared<RankWeights>();
    for (size_t rank = 0; rank < shares_.size(); ++rank) {
      weights->emplace_back(modules_.modules().size(), std::move(layouts[rank]));
      shares_[rank].set_outputs(*spec, weights->back());
    }
    if (!entry.blocks.empty()) place(*weights, entry.blocks);
    entry.weights = weights;
  }
  Stored stored{need, std::move(weights), entry.merge_use, {}};
  for (size_t i = 0; i < spec->parts.size(); ++i)
    stored.parts.push_back(add_part(spec->parts[i], std::move(part_layouts[i]), source));
  return stored;
}

Result<std::vector<ops::PanelLayout>> AdapterStore::part_layouts(
    const adapters::AdapterSpec& spec) const {
  std::vector<ops::PanelLayout> layouts;
  for (const adapters::AdapterPart& part : spec.parts) {
    const bool multiplied = part.kind == adapters::PartKind::kHead;
    VALORA_TRY(layout, ops::PanelLayout::of_matrix(part.rows, part.columns, dtype_, block_bytes_,
                                                   multiplied ? form_ : ops::WeightForm::kPlain));
    layouts.push_back(std::move(layout));
  }
  return layouts;
}

AdapterStore::StoredPart AdapterStore::add_part(const adapters::AdapterPart& part,
                                                ops::PanelLayout layout, const FolderPath& source) {
  PartEntry& entry = parts_[part.digest];
  std::erase_if(entry.sources, [&](const auto& known) { return known.first == source; });
  entry.sources.emplace_back(source, part);
  const int32_t blocks = layout.blocks();
  std::shared_ptr<ops::PlacedMatrix> matrix = entry.matrix.lock();
  if (!matrix) {
    matrix = std::make_shared<ops::PlacedMatrix>(std::move(layout));
    if (!entry.blocks.empty()) matrix->place(entry.blocks);
    entry.matrix = matrix;
  }
  return {{part.digest, blocks}, std::move(matrix)};
}

void AdapterStore::release_kept(Entry& entry) {
  if (entry.kept) kept_bytes_ -= entry.kept->bytes;
  entry.kept.reset();
}

// Content in the pool is kept, because it may be loaded again before it is evicted.
void AdapterStore::drop_unused() {
  for (auto& [digest, entry] : entries_)
    if (entry.weights.expired()) release_kept(entry);
  std::erase_if(entries_, [](const auto& entry) {
    return entry.second.weights.expired() && entry.second.blocks.empty();
  });
  std::erase_if(parts_, [](const auto& entry) {
    return entry.second.matrix.expired() && entry.second.blocks.empty();
  });
  sweep_at_ = 2 * entries_.size() + 64;  // so that thousands of loads do not each scan all entries
}

Result<AdapterStore::Source> AdapterStore::source_of(const Digest& digest) const {
  const std::lock_guard lock(mutex_);
  Source source;
  const auto it = entries_.find(digest);
  if (it != entries_.end()) source.weights = it->second.weights.lock();
  if (!source.weights) return Error{ErrorCode::kCancelled, "the adapter was unloaded", {}};
  source.kept = it->second.kept;
  source.paths = it->second.paths;
  source.headers = it->second.headers;
  source.content = it->second.content;
  return source;
}

std::optional<Digest> AdapterStore::content_of(const Digest& digest) const {
  const std::lock_guard lock(mutex_);
  if (const auto part = parts_.find(digest); part != parts_.end())
    return part->second.matrix.expired() ? std::nullopt : std::optional(digest);
  const auto it = entries_.find(digest);
  if (it == entries_.end() || it->second.weights.expired()) return std::nullopt;
  return it->second.content;
}

void AdapterStore::learn_values(const Digest& digest, const adapters::AdapterSpec& spec) {
  // Before locking, as in add().
  const serving::MergeUse merge_use = merges_->use_of(spec, modules_);
  const std::lock_guard lock(mutex_);
  const auto it = entries_.find(digest);
  if (it == entries_.end()) return;
  it->second.content = spec.panels_digest;
  *it->second.merge_use = merge_use;
}

// Rows are read when they are needed, so that is when their range is known.
Status AdapterStore::check_part(const PartEntry& entry, const TensorView& rows) const {
  if (!overflows(rows, dtype_)) return {};
  return unprocessable("its " + std::string(part_kind_name(entry.sources.back().second.kind)) +
                           " has values that are infinite in " + dtype_name(dtype_),
                       "model");
}

Status AdapterStore::read_part(const PartEntry& entry, const ops::PanelLayout& layout,
                               std::span<std::byte* const> blocks) const {
  Status status;
  for (auto from = entry.sources.rbegin(); from != entry.sources.rend(); ++from) {
    status = adapters::read_part(from->first, from->second, limits_,
                                 [&](int64_t first, const TensorView& rows) -> Status {
                                   VALORA_CHECK(check_part(entry, rows));
                                   layout.write_rows(first, rows, blocks);
                                   return {};
                                 });
    if (status.ok()) return status;
    status = unreadable(from->first.path, status.error());
  }
  return status;
}

// A lazy adapter's first reading is also its first check.
Result<adapters::AdapterSpec> AdapterStore::read_again(const FolderPath& where, bool known) const {
  const auto read = [&] { return adapters::read_adapter_again(where, modules_, limits_, known); };
  if (known) return read();
  VALORA_TRY(spec, adapters::read_at_rest(where, read));
  VALORA_CHECK(check_range(spec, modules_, dtype_));
  for (const std::string& warning : spec.warnings)
    spdlog::warn("the adapter in {}: {}", where.path, warning);
  return spec;
}

Status AdapterStore::read(const Digest& digest, const RankBlocks& blocks) {
  std::shared_ptr<ops::PlacedMatrix> matrix;
  PartEntry part;
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = parts_.find(digest); it != parts_.end()) {
      part = it->second;
      matrix = part.matrix.lock();
      if (!matrix) return Error{ErrorCode::kCancelled, "the adapter was unloaded", {}};
    }
  }
  if (matrix) return read_part(part, *matrix->layout(), blocks[0]);
  VALORA_TRY(source, source_of(digest));
  if (source.kept) {
    write(*source.kept, *source.weights, blocks);
    return {};
  }
  Status status;
  for (auto from = source.paths.rbegin(); from != source.paths.rend(); ++from) {
    const std::string& path = from->path;
    const auto spec = read_again(*from, source.content.has_value());
    if (!spec.ok()) {
      status = unreadable(path, spec.error());
    } else if (source.content ? spec->digest != *source.content
                              : spec->headers_digest != source.headers) {
      status = unreadable(path, changed(path));
    } else {
      if (!source.content) learn_values(digest, *spec);
      write(*spec, *source.weights, blocks);
      return {};
    }
  }
  return status;
}

void AdapterStore::placed(const Digest& digest, RankBlocks blocks) {
  const std::lock_guard lock(mutex_);
  if (const auto part = parts_.find(digest); part != parts_.end()) {
    part->second.blocks = std::move(blocks[0]);
    if (const auto matrix = part->second.matrix.lock()) matrix->place(part->second.blocks);
    return;
  }
  const auto it = entries_.find(digest);
  if (it == entries_.end()) return;
  it->second.blocks = std::move(blocks);
  release_kept(it->second);
  if (const auto weights = it->second.weights.lock()) place(*weights, it->second.blocks);
}

void AdapterStore::on_evicted(const Digest& digest) {
  const std::lock_guard lock(mutex_);
  if (const auto part = parts_.find(digest); part != parts_.end()) {
    part->second.blocks.clear();
    if (const auto matrix = part->second.matrix.lock()) matrix->unplace();
    return;
  }
  const auto it = entries_.find(digest);
  if (it == entries_.end()) return;
  it->second.blocks.clear();
  if (const auto weights = it->second.weights.lock())
    for (ops::AdapterWeights& of_rank : *weights) of_rank.unplace();
}

serving::AdapterBackend::Residency AdapterStore::residency(const Digest& digest) const {
  const std::lock_guard lock(mutex_);
  const auto it = entries_.find(digest);
  if (it == entries_.end()) return {WeightsPlace::kFile, {}};
  const Entry& entry = it->second;
  const WeightsPlace place = !entry.blocks.empty() ? WeightsPlace::kPool
                             : entry.kept          ? WeightsPlace::kHost
                                                   : WeightsPlace::kFile;
  return {place, entry.last_load};
}

void AdapterStore::record_load(const Digest& digest, const AdapterLoad& load) {
  const std::lock_guard lock(mutex_);
  if (const auto it = entries_.find(digest); it != entries_.end()) it->second.last_load = load;
}

}  // namespace valora
