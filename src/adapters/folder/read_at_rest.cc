#include "adapters/folder/read_at_rest.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/files/folder_snapshot.h"

namespace valora::adapters {
namespace {

// A copy over a network or to a busy disk writes every few milliseconds.
constexpr std::chrono::milliseconds kRest{100};
constexpr int kMostWaits = 5;     // of kRest each, per reading
constexpr int kMostReadings = 3;  // of a folder whose files change while they are read
constexpr size_t kBytesTogether = size_t{64} << 20;

// Waits until no file was written for kRest. kConflict: that never came about.
Status wait_for_rest(const FolderPath& where) {
  const auto folder = InputFolder::open(where);
  if (!folder.ok()) return {};  // whoever reads it says so
  FolderSnapshot before = FolderSnapshot::take(*folder, adapter_files());
  for (int i = 0; !before.at_rest_for(kRest); ++i) {
    std::this_thread::sleep_for(kRest);
    FolderSnapshot after = FolderSnapshot::take(*folder, adapter_files());
    if (after == before) return {};
    if (i == kMostWaits) return before.check(*folder);
    before = std::move(after);
  }
  return {};
}

}  // namespace

Status compare_again(const InputFile& input, const SafeTensors& file) {
  using Tensor = std::pair<std::string, std::span<const uint8_t>>;
  std::vector<Tensor> read;
  for (const auto& [name, view] : file.tensors())
    if (!view.bytes.empty()) read.emplace_back(name, view.bytes);
  // In the file's order, which is that of the bytes in memory.
  std::ranges::sort(read, {}, [](const Tensor& tensor) { return tensor.second.data(); });
  for (size_t begin = 0; begin < read.size();) {
    std::set<std::string> names;
    size_t end = begin;
    for (size_t bytes = 0; end < read.size() && (end == begin || bytes < kBytesTogether); ++end) {
      bytes += read[end].second.size();
      names.insert(read[end].first);
    }
    VALORA_TRY(again, SafeTensors::read(
                          input, [&](const std::string& name) { return names.contains(name); }));
    for (; begin < end; ++begin) {
      const TensorView* view = again->find(read[begin].first);
      if (!view || !std::ranges::equal(view->bytes, read[begin].second))
        return changed_while_read(input.path());
    }
  }
  return {};
}

Result<AdapterSpec> read_at_rest(const FolderPath& where,
                                 const std::function<Result<AdapterSpec>()>& read) {
  for (int reading = 1;; ++reading) {
    VALORA_CHECK(wait_for_rest(where));
    Result<AdapterSpec> spec = read();
    if (spec.ok() || spec.error().code != ErrorCode::kConflict || reading == kMostReadings)
      return spec;
  }
}

}  // namespace valora::adapters
