// Adapter contents by digest: their source folders and their panels in the pool. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "adapters/adapter_spec.h"
#include "base/digest.h"
#include "engine/adapters/adapter_tensors.h"
#include "engine/adapters/merge_bound.h"
#include "engine/adapters/rank_share.h"
#include "memory/identity.h"
#include "ops/weights/placed_matrix.h"
#include "serving/adapters/adapter_backend.h"

namespace valora {

// Block addresses by rank, then by block: each rank has its own memory for every block of the pool.
using RankBlocks = std::vector<std::vector<std::byte*>>;

class AdapterStore {
 public:
  // dtype, block_bytes: of a rank's part of the pool. form: the layout in which kernels read
  // adapters there. merges: which adapters may be merged. modules must outlive the store.
  AdapterStore(const adapters::ModuleTable& modules, const adapters::AdapterLimits& limits,
               at::ScalarType dtype, size_t block_bytes, ops::WeightForm form, int ranks,
               std::shared_ptr<const MergeBound> merges)
      : modules_(modules),
        limits_(limits),
        dtype_(dtype),
        block_bytes_(block_bytes),
        form_(form),
        merges_(std::move(merges)) {
    for (int rank = 0; rank < ranks; ++rank) shares_.emplace_back(modules, rank, ranks);
  }

  // A part of an adapter, shared by all adapters with the same part.
  struct StoredPart {
    memory::AdapterNeed need;
    std::shared_ptr<ops::PlacedMatrix> matrix;  // like Stored::weights
  };
  struct Stored {
    memory::AdapterNeed need;
    // Has no panels until they are in the pool. Shared by adapters of equal content. Only the
    // engine thread may read panels.
    std::shared_ptr<RankWeights> weights;
    std::shared_ptr<const std::atomic<serving::MergeUse>> merge_use;  // of LoadedAdapter
    std::vector<StoredPart> parts;  // in the order of AdapterSpec::parts
  };
  // Digests in this class are those of AdapterNeed: of an adapter or of one of its parts.
  //
  // Records spec->path as a source of this content. Caches the spec for the first read() unless the
  // cache is full. Accepts a spec read from headers only; the first read() then checks its values.
  // kUnprocessable: a panel does not fit into a block.
  Result<Stored> add(const std::shared_ptr<const adapters::AdapterSpec>& spec);

  // The digest of the adapter's values; nullopt until they have been read and checked.
  std::optional<Digest> content_of(const Digest& digest) const;
  // Writes the panels to blocks of host memory, from the cached spec or from the files, which are
  // read once for all ranks. Errors name the folder: kNotFound (it is gone), kConflict (its content
  // has changed), or those of adapters::read_adapter().
  Status read(const Digest& digest, const RankBlocks& blocks);

  // Tells the store that the panels are now in these blocks. Called by the engine thread.
  void placed(const Digest& digest, RankBlocks blocks);
  void on_evicted(const Digest& digest);
  // Whether the adapter is in the pool, cached here, or only in its file.
  serving::AdapterBackend::Residency residency(const Digest& digest) const;
  void record_load(const Digest& digest, const AdapterLoad& load);

 private:
  struct Entry {
    std::weak_ptr<RankWeights> weights;
    std::shared_ptr<std::atomic<serving::MergeUse>> merge_use =
        std::make_shared<std::atomic<serving::MergeUse>>(serving::MergeUse::kNever);
    Digest headers;                 // AdapterSpec::panels_headers_digest
    std::optional<Digest> content;  // digest of the values; absent until they have been read
    std::vector<FolderPath> paths;  // newest last
    RankBlocks blocks;              // in the pool; empty: not there
    std::shared_ptr<const adapters::AdapterSpec> kept;
    std::optional<AdapterLoad> last_load;
  };

  struct PartEntry {
    std::weak_ptr<ops::PlacedMatrix> matrix;
    // Folders that hold it, newest last, each with the names of its tensors there.
    std::vector<std::pair<FolderPath, adapters::AdapterPart>> sources;
    std::vector<std::byte*> blocks;  // rank 0's
  };

  // Copies of everything a read needs, so that it runs without the lock.
  struct Source {
    std::shared_ptr<const RankWeights> weights;
    std::shared_ptr<const adapters::AdapterSpec> kept;
    std::vector<FolderPath> paths;
    Digest headers;
    std::optional<Digest> content;
  };

  Result<adapters::AdapterSpec> read_again(const FolderPath& where, bool known) const;
  Result<Source> source_of(const Digest& digest) const;
  Result<std::vector<ops::PanelLayout>> layouts(const adapters::AdapterSpec& spec) const;
  // Writes the panels of all ranks.
  void write(const adapters::AdapterSpec& spec, const RankWeights& weights,
             const RankBlocks& blocks) const;
  // The layouts of all parts, in order.
  Result<std::vector<ops::PanelLayout>> part_layouts(const adapters::AdapterSpec& spec) const;
  // Requires the lock.
  StoredPart add_part(const adapters::AdapterPart& part, ops::PanelLayout layout,
                      const FolderPath& source);
  Status check_part(const PartEntry& entry, const TensorView& rows) const;
  Status read_part(const PartEntry& entry, const ops::PanelLayout& layout,
                   std::span<std::byte* const> blocks) const;
  void learn_values(const Digest& digest, const adapters::AdapterSpec& spec);
  void drop_unused();
  void release_kept(Entry& entry);

  const adapters::ModuleTable& modules_;
  adapters::AdapterLimits limits_;
  at::ScalarType dtype_;
  size_t block_bytes_;
  ops::WeightForm form_;
  std::shared_ptr<const MergeBound> merges_;
  std::vector<RankShare> shares_;  // by rank
  mutable std::mutex mutex_;
  std::unordered_map<Digest, Entry> entries_;
  std::unordered_map<Digest, PartEntry> parts_;
  size_t kept_bytes_ = 0;
  size_t sweep_at_ = 64;  // number of entries at which unused ones are dropped
};

}  // namespace valora
