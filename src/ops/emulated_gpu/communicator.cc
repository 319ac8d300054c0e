// Collectives of emulated GPUs. Their memory is the host's, so the host computes the collectives.
// They can be captured like launches.
#include <cstdlib>

#include "base/threads/host_communicator.h"
#include "ops/device/gpu_communicator.h"
#include "ops/emulated_gpu/faults.h"
#include "ops/emulated_gpu/recording.h"

namespace valora::ops {
namespace {

class EmulatedCommunicator final : public Communicator {
 public:
  explicit EmulatedCommunicator(int ranks) : Communicator(ranks), host_(ranks, {.spin = {}}) {}

  void all_reduce(int rank, std::span<float> values, const ParallelFor&,
                  Reduction reduction) override {
    launch([=, this] { host_.all_reduce(rank, values, serial_for, reduction); });
  }
  void gather_columns(int rank, std::span<const float> part, int64_t rows, float* whole,
                      const ParallelFor&) override {
    launch([=, this] { host_.gather_columns(rank, part, rows, whole, serial_for); });
  }
  void broadcast(int rank, std::span<std::byte> bytes) override {
    launch([=, this] { host_.broadcast(rank, bytes); });
  }
  bool all_agree(int rank, bool yes) override { return host_.all_agree(rank, yes); }
  void fail(int rank, const std::string& reason) noexcept override { host_.fail(rank, reason); }
  std::optional<std::string> failure() const override { return host_.failure(); }
  Stats stats() const override { return host_.stats(); }

 private:
  template <typename Launch>
  static void launch(const Launch& call) {
    emulated::check_alive();
    if (emulated::recording() != nullptr) emulated::recording()->calls.emplace_back(call);
    call();
  }

  HostCommunicator host_;
};

}  // namespace

std::string why_no_gpu_communicator() { return {}; }

std::unique_ptr<Communicator> make_gpu_communicator(int ranks) {
  return std::make_unique<EmulatedCommunicator>(ranks);
}

}  // namespace valora::ops
