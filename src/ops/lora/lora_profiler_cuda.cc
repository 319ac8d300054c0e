#include "ops/lora/lora_profiler.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "ops/device/cuda_types.h"
#include "ops/device/gpu.h"
#include "ops/launch/launch_capture.h"
#include "ops/lora/lora_cuda.h"
#include "ops/merge/merge_operands_cuda.h"

namespace valora::ops {
namespace {

namespace cuda = kernels::cuda;
using kernels::CudaTile;
using kernels::ProductShape;

constexpr int64_t kMostLaunches = 48;                   // per graph, each with its own factors
constexpr int64_t kMostFactorBytes = int64_t{4} << 30;  // over all launches
constexpr int64_t kMostRank = 256;
constexpr int64_t kElement = 2;  // bytes

// More than the caches can hold.
int64_t flushed_bytes() {
  constexpr int64_t kLeast = int64_t{1} << 20;
  return std::max(kLeast, 2 * this_gpu().cache_bytes);
}

// The operands of the launches for one shape of low-rank products.
class LoraOperands {
 public:
  LoraOperands(const ProductShape& shape, at::Device device)
      : shrink_(kernels::is_shrink(shape.kind)) {
    const int64_t width = shrink_ ? shape.n : shape.k;  // sum of the ranks of all slices
    slices_ = shrink_ ? (width + kMostRank - 1) / kMostRank : 1;
    rank_ = std::min(kMostRank, (width + slices_ - 1) / slices_);
    const bool is_long = kernels::is_long(shape.kind);
    adapters_ = is_long ? 1 : shape.m;
    tokens_ = is_long ? shape.m * cuda::kWideLoraTile : shape.m;
    // A shrink reads no outputs, and an expand reads no inputs.
    in_ = shrink_ ? shape.k : kLeast;
    out_ = shrink_ ? kLeast : shape.n;
    const int64_t elements = slices_ * rank_ * (in_ + out_) * adapters_;
    sets_ = std::clamp(kMostFactorBytes / (elements * kElement), int64_t{1}, kMostLaunches);
    const auto half = at::TensorOptions().dtype(at::kBFloat16).device(device);
    factors_ = at::empty({sets_ * elements}, half).uniform_(-0.01, 0.01);
    x_ = at::empty({tokens_, in_}, half).uniform_(-1, 1);
    y_ = at::zeros({slices_, tokens_, out_}, half);
    add_tables(device);
  }

  int64_t sets() const { return sets_; }

  cuda::LoraCall call(int64_t set) const {
    cuda::LoraCall c;
    c.dtype = cuda::Dtype::kBf16;
    c.x = x_.const_data_ptr(), c.x_stride = in_, c.in = static_cast<int32_t>(in_);
    for (int64_t i = 0; i < slices_; ++i)
      c.slices[i] = {y_[i].data_ptr(), out_, static_cast<int32_t>(out_),
                     static_cast<int32_t>(set * slices_ + i)};
    c.slice_count = static_cast<int32_t>(slices_);
    c.max_rank = static_cast<int32_t>(rank_);
    c.sizes = sizes_, c.tables = tables_at(offsets_, memory_);
    return c;
  }

 private:
  static constexpr int64_t kLeast = 8;

  void add_tables(at::Device device) {
    const auto* next = static_cast<const std::byte*>(factors_.const_data_ptr());
    const auto take = [&](int64_t elements) {
      const std::byte* at = next;
      next += elements * kElement;
      return cuda::DeviceLoraFactor{at, nullptr, 0};
    };
    std::vector<cuda::DeviceLoraModule> modules;  // [adapter][set, slice]
    for (int64_t i = 0; i < adapters_ * sets_ * slices_; ++i) {
      const cuda::DeviceLoraFactor a = take(rank_ * in_), b = take(rank_ * out_);
      modules.push_back({a, b, static_cast<int32_t>(rank_), static_cast<int32_t>(in_),
                         static_cast<int32_t>(out_), 1});
    }
    const size_t first = modules_.add(modules);
    modules_.copy_to(device);
    std::vector<cuda::DeviceLoraSegment> segments;
    const int64_t of_each = tokens_ / adapters_;
    for (int64_t i = 0; i < adapters_; ++i)
      segments.push_back({static_cast<int32_t>(i * of_each),
                          static_cast<int32_t>((i + 1) * of_each), 0, 1,
                          modules_.at<cuda::DeviceLoraModule>(first) + i * sets_ * slices_});
    const cuda::LoraPlan plan = cuda::plan_lora(segments.data(), segments.size());
    offsets_ = ops::add_tables(plan, memory_);
    memory_.copy_to(device);
    sizes_ = plan.sizes;
  }

  bool shrink_;
  int64_t slices_, rank_, adapters_, tokens_, in_, out_, sets_;
  at::Tensor factors_, x_, y_;
  DeviceTables modules_, memory_;
  LoraOffsets offsets_{};
  cuda::LoraSizes sizes_;
};

class CapturedLoraProfiler final : public LoraProfiler {
 public:
  CapturedLoraProfiler(at::Device device, std::unique_ptr<LaunchCapture> capture,
                       const Clock& clock)
      : device_(device),
        clock_(clock),
        capture_(std::move(capture)),
        flush_(at::empty({flushed_bytes()}, at::TensorOptions().dtype(at::kByte).device(device))) {}

  double seconds(const ProductShape& shape, const CudaTile& tile) override {
    if (!(shape_ == shape)) prepare(shape);
    auto graph = std::ranges::find(graphs_, tile, &Graph::tile);
    if (graph == graphs_.end()) {
      graphs_.push_back(operands_ ? captured(tile) : captured_merge(tile));
      graph = std::prev(graphs_.end());
    }
    flush_.fill_(1);
    wait();
    const TimePoint begin = clock_.now();
    graph->launches->replay();
    wait();
    const int64_t launches = operands_ ? operands_->sets() : 1;
    return valora::seconds(clock_.now() - begin) / static_cast<double>(launches);
  }

 private:
  struct Graph {
    CudaTile tile;
    at::Tensor workspace;  // what the launches need besides the operands
    std::unique_ptr<CapturedLaunches> launches;
  };

  void wait() const {
    c10::impl::VirtualGuardImpl(device_.type()).synchronizeDevice(device_.index());
  }

  void prepare(const ProductShape& shape) {
    graphs_.clear();
    operands_.reset();  // frees their memory before the next ones allocate
    merge_.reset();
    shape_ = {};
    if (shape.kind == kernels::ProductKind::kMerge)
      merge_ = std::make_unique<MergeOperands>(shape, device_);
    else
      operands_ = std::make_unique<LoraOperands>(shape, device_);
    shape_ = shape;
  }

  Graph captured_merge(const CudaTile& tile) {
    const MergeTable table = merge_->table(tile);
    wait();  // for the copy
    return {tile, table.memory.memory(), capture_->capture([&] {
              check_launch(
                  cuda::merge(cuda::Dtype::kBf16, table.plan, table.merges(), stream_of(flush_)),
                  "merge");
            })};
  }

  Graph captured(const CudaTile& tile) {
    const bool shrink = kernels::is_shrink(shape_.kind);
    cuda::LoraTiles tiles = cuda::choose_lora_tiles(operands_->call(0), gpu_arch());
    (shrink ? tiles.shrink : tiles.expand) = tile;
    Graph graph{tile, {}, {}};
    graph.workspace =
        at::zeros({static_cast<int64_t>(cuda::lora_workspace_bytes(operands_->call(0), tiles))},
                  flush_.options());
    void* workspace = graph.workspace.data_ptr();
    graph.launches = capture_->capture([&] {
      cuda::Stream stream = stream_of(flush_);
      for (int64_t set = 0; set < operands_->sets(); ++set) {
        const cuda::LoraCall call = operands_->call(set);
        check_launch(shrink ? cuda::lora_shrink(call, tiles, workspace, stream)
                            : cuda::lora_expand(call, tiles, workspace, stream),
                     "low-rank products");
      }
    });
    return graph;
  }

  at::Device device_;
  const Clock& clock_;
  std::unique_ptr<LaunchCapture> capture_;
  at::Tensor flush_;  // writing to it evicts everything else from the caches
  ProductShape shape_;
  std::unique_ptr<LoraOperands> operands_;  // or
  std::unique_ptr<MergeOperands> merge_;
  std::vector<Graph> graphs_;  // by tile, for the current shape
};

}  // namespace

std::unique_ptr<LoraProfiler> LoraProfiler::make(at::Device device, const Clock& clock) {
  if (device.is_cpu()) return nullptr;
  auto capture = LaunchCapture::make(device);
  if (!capture) return nullptr;
  return std::make_unique<CapturedLoraProfiler>(device, std::move(capture), clock);
}

}  // namespace valora::ops
