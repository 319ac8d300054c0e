#include "lab/ops/paged_adapters_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>

#include "lab/ops/decoder_linears.h"
#include "ops/attention/attention.h"
#include "ops/device/pool_memory.h"

namespace valora::bench {
namespace {

constexpr int64_t kPoolBytes = int64_t{400} << 20;  // at least, or twice the adapters

struct PagedShape {
  int64_t layers, tokens, rank;  // one adapter per token
};

// Size of the blocks of the model's KV cache: 192 KiB.
size_t block_bytes() {
  constexpr int64_t kLayers = 24, kHeadDim = 64;
  return static_cast<size_t>(ops::KvArena::block_bytes(
      {kLayers, kDecoderKeyWidth / kHeadDim, kHeadDim, at::kBFloat16}, at::kCPU));
}

TensorView view_of(const at::Tensor& values) {
  return {DType::kBF16,
          values.sizes().vec(),
          {static_cast<const uint8_t*>(values.const_data_ptr()), values.nbytes()}};
}

ops::PanelLayout layout_of(std::span<const DecoderLayer> layers, int64_t rank) {
  std::vector<ops::LoraShape> shapes;
  for (const DecoderLayer& layer : layers)
    for (const DecoderLinear* l : layer.linears())
      shapes.push_back({l->module, rank, l->weight.in(), l->weight.out(), 1});
  auto layout = ops::PanelLayout::make(shapes, at::kBFloat16, block_bytes());
  TORCH_CHECK(layout.ok(), layout.error().message);
  return std::move(*layout);
}

// A pool that hands out blocks in random order, as after a long run.
class AdapterPool {
 public:
  explicit AdapterPool(int32_t least_blocks)
      : memory_(std::max(least_blocks, static_cast<int32_t>(kPoolBytes / block_bytes())),
                block_bytes(), at::kCPU),
        free_(memory_.blocks()) {
    memory_.as(at::kByte).fill_(1);  // touches the pages before timing
    std::iota(free_.begin(), free_.end(), 0);
    std::shuffle(free_.begin(), free_.end(), std::mt19937(1));
  }
  std::vector<std::byte*> take(int32_t count) {
    std::vector<std::byte*> blocks;
    for (; count > 0; --count, free_.pop_back()) blocks.push_back(memory_.block(free_.back()));
    return blocks;
  }

 private:
  ops::PoolMemory memory_;
  std::vector<int32_t> free_;
};

class PagedSteps {
 public:
  explicit PagedSteps(const PagedShape& shape)
      : x_(decoder_input(shape.tokens)),
        decoder_(make_decoder(shape.layers)),
        layout_(layout_of(decoder_, shape.rank)),
        pool_(layout_.blocks() * static_cast<int32_t>(2 * shape.tokens)) {
    for (int a = 0; a < shape.tokens; ++a) {
      together_.push_back(make_adapter(decoder_, shape.rank, a));
      paged_.push_back(make_paged(shape.rank, a));
    }
  }
  at::Tensor run(bool paged) const {
    return run_linears(decoder_, x_, even_segments(x_.size(0), paged ? paged_ : together_));
  }
  Work work() const {
    Work work = work_of(decoder_, x_.size(0));
    work.bytes += static_cast<double>(layout_.bytes() * together_.size());
    return work;
  }
  // The share of the blocks that panels occupy.
  double filled() const {
    return static_cast<double>(layout_.bytes()) /
           (static_cast<double>(layout_.blocks()) * static_cast<double>(block_bytes()));
  }

 private:
  ops::AdapterWeights make_paged(int64_t rank, int number) {
    const auto blocks = pool_.take(layout_.blocks());
    size_t index = 0;
    for (const DecoderLayer& layer : decoder_)
      for (const DecoderLinear* l : layer.linears()) {
        const AdapterValues values = adapter_values(*l, rank, number);
        layout_.write(index++, view_of(values.a), view_of(values.b), blocks);
      }
    ops::AdapterWeights adapter(index, layout_);
    adapter.place(blocks);
    return adapter;
  }

  at::Tensor x_;
  std::vector<DecoderLayer> decoder_;
  ops::PanelLayout layout_;
  AdapterPool pool_;
  std::vector<ops::AdapterWeights> together_, paged_;
};

Measurement measure_paged(Bench& bench, const PagedShape& shape) {
  const auto steps = std::make_shared<PagedSteps>(shape);
  bench.notes[fmt::format("paged_adapters_filled_rank_{}", shape.rank)] = steps->filled();
  return compete(bench, steps->work(),
                 {pure("together", [=] { return steps->run(false); }),
                  pure("paged", [=] { return steps->run(true); })},
                 0);
}

}  // namespace

std::vector<Shape> paged_adapter_shapes(bool quick) {
  // The factors of rank 64 are larger than a block.
  std::vector<PagedShape> list{{24, 1, 16}, {24, 8, 16}, {24, 8, 64}};
  if (quick) list = {{6, 8, 16}};
  std::vector<Shape> shapes;
  for (const PagedShape& s : list)
    shapes.push_back({"paged_adapters",
                      fmt::format("0.5B {} layers tokens {} rank {}", s.layers, s.tokens, s.rank),
                      {{"layers", s.layers}, {"tokens", s.tokens}, {"rank", s.rank}},
                      [s](Bench& bench) { return measure_paged(bench, s); }});
  return shapes;
}

}  // namespace valora::bench
