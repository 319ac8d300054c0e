// Collectives of GPUs by NCCL, through libtorch's process groups: one per rank. The groups find
// each other through a store in this process.
#include <c10/cuda/CUDAGuard.h>
#include <ATen/cuda/CUDAGraphsUtils.cuh>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "base/threads/host_communicator.h"
#include "base/threads/rank_threads.h"
#include "base/threads/step_watch.h"
#include "ops/device/gpu_communicator.h"

namespace valora::ops {
namespace {

using Group = c10::intrusive_ptr<c10d::ProcessGroupNCCL>;

// Longer than the step's own limit, which comes first and also covers captured collectives.
constexpr auto kGroupLimit = std::chrono::minutes(30);
constexpr auto kConnectLimit = std::chrono::minutes(2);

at::Device gpu_of(int rank) { return at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(rank)); }

template <typename T>
at::Tensor on_gpu(int rank, T* values, size_t count, at::ScalarType dtype) {
  const at::Device device = gpu_of(rank);
  const auto options = at::TensorOptions().dtype(dtype).device(device);
  if (count == 0) return at::empty({0}, options);
  void* const memory = const_cast<std::remove_const_t<T>*>(values);
  return at::for_blob(memory, {static_cast<int64_t>(count)})
      .options(options)
      .target_device(device)
      .make_tensor();
}

class NcclCommunicator final : public Communicator {
 public:
  explicit NcclCommunicator(int ranks)
      : Communicator(ranks),
        host_(ranks, {}),
        store_(c10::make_intrusive<c10d::HashStore>()),
        groups_(static_cast<size_t>(ranks)),
        columns_of_(static_cast<size_t>(ranks)) {
    RankThreads threads(host_);
    StepWatch watch(host_, {.limit = kConnectLimit});
    const StepWatch::Step step(&watch);
    threads.run([&](int rank) { connect(rank); });
  }

  // Releases failed communicators, whose destructors might never return.
  ~NcclCommunicator() override {
    for (Group& group : groups_) {
      if (host_.failure())
        (void)group.release();
      else if (group)
        group->abort();
    }
  }

  void all_reduce(int rank, std::span<float> values, const ParallelFor&,
                  Reduction reduction) override {
    c10d::AllreduceOptions options;
    options.reduceOp = reduction == Reduction::kSum ? c10d::ReduceOp::SUM : c10d::ReduceOp::MAX;
    options.asyncOp = false;  // run on the current stream
    std::vector<at::Tensor> tensors{on_gpu(rank, values.data(), values.size(), at::kFloat)};
    if (!values.empty()) launch(rank, [&](Group& group) { group->allreduce(tensors, options); });
    count(rank, 2 * others() * values.size_bytes());
  }

  void gather_columns(int rank, std::span<const float> part, int64_t rows, float* whole,
                      const ParallelFor&) override {
    const std::vector<int64_t> columns = columns_of_all(rank, part, rows);
    int64_t all = 0;
    for (const int64_t of_rank : columns) all += of_rank;
    std::vector<int64_t> received(columns.size()), sent(columns.size());
    sent[0] = static_cast<int64_t>(part.size());
    for (size_t r = 0; rank == 0 && r < columns.size(); ++r) received[r] = rows * columns[r];
    at::Tensor from = on_gpu(rank, part.data(), part.size(), at::kFloat);
    at::Tensor to = at::empty({rank == 0 ? rows * all : 0}, from.options());
    c10d::AllToAllOptions options;
    options.asyncOp = false;
    if (rows > 0)
      launch(rank, [&](Group& group) { group->alltoall_base(to, from, received, sent, options); });
    if (rank == 0) {
      const at::Tensor side_by_side =
          on_gpu(rank, whole, static_cast<size_t>(rows * all), at::kFloat).view({rows, all});
      int64_t row = 0, column = 0;
      for (size_t r = 0; r < columns.size(); ++r) {
        side_by_side.narrow(1, column, columns[r])
            .copy_(to.narrow(0, row, received[r]).view({rows, columns[r]}));
        row += received[r], column += columns[r];
      }
    }
    count(rank, static_cast<uint64_t>(rows * (all - columns[0])) * sizeof(float));
  }

  void broadcast(int rank, std::span<std::byte> bytes) override {
    c10d::BroadcastOptions options;
    options.asyncOp = false;
    std::vector<at::Tensor> tensors{on_gpu(rank, bytes.data(), bytes.size(), at::kByte)};
    if (!bytes.empty()) launch(rank, [&](Group& group) { group->broadcast(tensors, options); });
    count(rank, others() * bytes.size());
  }

  bool all_agree(int rank, bool yes) override { return host_.all_agree(rank, yes); }

  // Aborts the current collectives, on separate threads because aborting may take as long as the
  // failing collectives.
  void fail(int rank, const std::string& reason) noexcept override {
    host_.fail(rank, reason);
    if (aborted_.exchange(true)) return;
    try {
      for (const Group& group : groups_)
        if (group) std::thread([group] { abort(group); }).detach();
    } catch (...) {  // no thread could start: the step's watch ends the process
    }
  }
  std::optional<std::string> failure() const override { return host_.failure(); }

  Stats stats() const override { return {collectives_.load(), bytes_.load(), 0}; }
  void count_replay(const Stats& stats) override {
    collectives_ += stats.collectives;
    bytes_ += stats.bytes;
  }

 private:
  uint64_t others() const { return static_cast<uint64_t>(ranks()) - 1; }

  static void abort(const Group& group) noexcept {
    try {
      group->abort();
    } catch (const std::exception&) {  // only the first failure is reported
    }
  }

  // Called on all ranks at once. A first sum checks that they can reach each other.
  void connect(int rank) {
    const c10::cuda::CUDAGuard device(gpu_of(rank));
    auto options = c10d::ProcessGroupNCCL::Options::create();
    options->timeout = kGroupLimit;
    Group& group = groups_[static_cast<size_t>(rank)];
    group = c10::make_intrusive<c10d::ProcessGroupNCCL>(store_, rank, ranks(), options);
    at::Tensor sum =
        at::full({1}, rank + 1.0, at::TensorOptions().dtype(at::kFloat).device(gpu_of(rank)));
    std::vector<at::Tensor> tensors{sum};
    c10d::AllreduceOptions sums;
    sums.asyncOp = false;
    group->allreduce(tensors, sums);
    const auto expected = static_cast<float>(ranks() * (ranks() + 1) / 2);
    TORCH_CHECK(sum.item<float>() == expected, "the first sum over the GPUs is ", sum.item<float>(),
                ", not ", expected);
  }

  template <typename Launch>
  void launch(int rank, const Launch& call) {
    if (const auto failure = host_.failure()) throw RankLostError(*failure);
    call(groups_[static_cast<size_t>(rank)]);
  }

  // The hosts exchange the column counts once, because they are the same in every call.
  const std::vector<int64_t>& columns_of_all(int rank, std::span<const float> part, int64_t rows) {
    std::vector<int64_t>& known = columns_of_[static_cast<size_t>(rank)];
    if (!known.empty() || rows == 0) {
      if (known.empty()) known.resize(static_cast<size_t>(ranks()));
      return known;
    }
    std::vector<float> columns(static_cast<size_t>(ranks()));
    columns[static_cast<size_t>(rank)] =
        static_cast<float>(static_cast<int64_t>(part.size()) / rows);
    host_.all_reduce(rank, columns, serial_for, Reduction::kSum);
    known.assign(columns.begin(), columns.end());
    return known;
  }

  // Ignores collectives being captured, which have not moved any bytes yet.
  void count(int rank, uint64_t bytes) {
    if (rank != 0 ||
        at::cuda::currentStreamCaptureStatusMayInitCtx() != at::cuda::CaptureStatus::None)
      return;
    ++collectives_;
    bytes_ += bytes;
  }

  HostCommunicator host_;  // failures, and exchanges between the hosts
  c10::intrusive_ptr<c10d::Store> store_;
  std::vector<Group> groups_;
  std::vector<std::vector<int64_t>> columns_of_;  // by calling rank
  std::atomic<bool> aborted_ = false;
  std::atomic<uint64_t> collectives_ = 0, bytes_ = 0;
};

}  // namespace

std::string why_no_gpu_communicator() { return {}; }

std::unique_ptr<Communicator> make_gpu_communicator(int ranks) {
  return std::make_unique<NcclCommunicator>(ranks);
}

}  // namespace valora::ops
