#include "engine/adapters/head_store.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/weights/weights.h"

namespace valora {
namespace {

Digest digest_of_head(const adapters::TaskHead& head) {
  DigestBuilder digest;
  const auto add = [&](const TensorView& tensor) {
    digest.add(static_cast<uint8_t>(tensor.dtype))
        .add(std::span<const int64_t>(tensor.shape))
        .add(tensor.bytes);
  };
  add(head.weight);
  digest.add(head.bias.has_value());
  if (head.bias) add(*head.bias);
  for (const std::string& label : head.labels) digest.add(label);
  return digest.finish();
}

int64_t head_bytes_of(const adapters::TaskHead& head) {
  size_t values = byte_size(head.weight) / dtype_size(head.weight.dtype);
  if (head.bias) values += byte_size(*head.bias) / dtype_size(head.bias->dtype);
  size_t bytes = values * sizeof(float);
  for (const std::string& label : head.labels) bytes += sizeof label + label.size();
  return static_cast<int64_t>(bytes);
}

// A copy, because the file may be overwritten while requests use it.
at::Tensor float_tensor(const TensorView& view, at::Device device) {
  return models::tensor_of(view).to(at::TensorOptions().dtype(at::kFloat).device(device),
                                    /*non_blocking=*/false, /*copy=*/true);
}

// Bytes that count as used as long as it exists.
class UsedBytes {
 public:
  UsedBytes(std::shared_ptr<std::atomic<int64_t>> used, int64_t bytes)
      : used_(std::move(used)), bytes_(bytes) {
    *used_ += bytes_;
  }
  ~UsedBytes() { *used_ -= bytes_; }
  UsedBytes(const UsedBytes&) = delete;
  UsedBytes& operator=(const UsedBytes&) = delete;

 private:
  const std::shared_ptr<std::atomic<int64_t>> used_;
  const int64_t bytes_;
};

}  // namespace

struct HeadStore::Stored {
  Stored(std::shared_ptr<std::atomic<int64_t>> used, const adapters::TaskHead& head,
         at::Device device)
      : bytes(std::move(used), head_bytes_of(head)),
        tensors(float_tensor(head.weight, device),
                head.bias ? float_tensor(*head.bias, device) : at::Tensor()),
        labels(head.labels) {}

  const UsedBytes bytes;
  const HeadTensors tensors;
  const Labels labels;
};

int64_t HeadStore::limit_beside(int64_t pool_bytes) {
  return std::max(pool_bytes / 4, int64_t{64} << 20);
}

Result<std::shared_ptr<const HeadStore::Stored>> HeadStore::store(const Digest& digest,
                                                                  const adapters::TaskHead& head) {
  // Held while tensors are copied, so that two loads together cannot exceed the limit.
  const std::lock_guard lock(mutex_);
  if (const auto known = stored_.find(digest); known != stored_.end())
    if (auto shared = known->second.lock()) return shared;
  std::erase_if(stored_, [](const auto& entry) { return entry.second.expired(); });
  const int64_t wanted = head_bytes_of(head), used = *used_;
  if (wanted > limit_ - used)
    return unprocessable(
        fmt::format("the head {} takes {} bytes with its {} labels, but heads may have {} bytes in "
                    "all, of which {} are used; unload adapters with heads or raise --pool-memory",
                    head.name, wanted, head.labels.size(), limit_, used),
        "lora_path");
  auto made = std::make_shared<const Stored>(used_, head, device_);
  stored_[digest] = made;
  return std::shared_ptr<const Stored>(std::move(made));
}

Result<std::vector<std::shared_ptr<const HeadTensors>>> HeadStore::add(
    std::vector<adapters::TaskHead>& heads) {
  std::vector<std::shared_ptr<const HeadTensors>> all;
  for (adapters::TaskHead& head : heads) {
    VALORA_TRY(stored, store(digest_of_head(head), head));
    head.labels = stored->labels;
    all.emplace_back(stored, &stored->tensors);
  }
  return all;
}

}  // namespace valora
