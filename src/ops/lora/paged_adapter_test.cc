// Adapters in the blocks of a pool equal adapters that own their tensors, bit for bit; only where
// panels are cut may the order of sums differ.
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <thread>

#include "kernels/cpu/product/panels.h"
#include "ops/device/pool_memory.h"
#include "ops/linear/linear.h"
#include "ops/merge/merge.h"

namespace valora::ops {
namespace {

struct Size {
  int64_t in, out;
};
// Odd sizes, including outputs and inputs of many panels.
constexpr Size kSizes[] = {{33, 21}, {64, 40}, {130, 700}, {700, 130}, {130, 700}};

DType file_dtype(at::ScalarType dtype) {
  switch (dtype) {
    case at::kDouble: return DType::kF64;
    case at::kFloat: return DType::kF32;
    case at::kHalf: return DType::kF16;
    default: return DType::kBF16;
  }
}

// The bytes of a tensor as in a file, `shift` bytes past an aligned address.
class FileTensor {
 public:
  FileTensor(const at::Tensor& values, size_t shift)
      : bytes_(values.nbytes() + shift), shape_(values.sizes().vec()), shift_(shift) {
    dtype_ = file_dtype(values.scalar_type());
    std::memcpy(bytes_.data() + shift, values.const_data_ptr(), values.nbytes());
  }
  TensorView view() const { return {dtype_, shape_, std::span(bytes_).subspan(shift_)}; }

 private:
  std::vector<uint8_t> bytes_;
  std::vector<int64_t> shape_;
  size_t shift_;
  DType dtype_;
};

// One adapter in both forms.
struct Both {
  AdapterWeights owning, paged;
  std::vector<std::byte*> blocks;
};

class PagedAdapters : public ::testing::TestWithParam<std::tuple<at::ScalarType, bool>> {
 protected:
  PagedAdapters() : generator_(at::make_generator<at::CPUGeneratorImpl>(5)) {}
  at::ScalarType dtype() const { return std::get<0>(GetParam()); }
  bool cuts() const { return std::get<1>(GetParam()); }
  at::Tensor random(at::IntArrayRef sizes) { return at::randn(sizes, generator_, at::kFloat); }

  // The smallest block for these sizes, so that factors with 700 outputs or inputs take several.
  size_t block_bytes() const {
    return pool_block_bytes(
        0, cuts() ? least_cut_block_bytes(dtype()) : largest_panel_bytes(700, 64, dtype()));
  }
  void expect_alike(const at::Tensor& paged, const at::Tensor& owning, const std::string& what) {
    if (cuts())
      EXPECT_TRUE(at::allclose(paged, owning, dtype() == at::kFloat ? 1e-5 : 1e-2,
                               dtype() == at::kFloat ? 1e-5 : 1e-2))
          << what;
    else
      EXPECT_TRUE(at::equal(paged, owning)) << what;
  }
  PoolMemory make_pool() const {
    PoolMemory pool(400, block_bytes(), at::kCPU);
    pool.as(dtype()).fill_(NAN);
    return pool;
  }
  // Takes `count` blocks in random order.
  std::vector<std::byte*> take(const PoolMemory& pool, int32_t count) {
    if (free_.empty())
      for (int32_t i = 0; i < pool.blocks(); ++i) free_.push_back(i);
    std::shuffle(free_.begin(), free_.end(), rng_);
    std::vector<std::byte*> blocks;
    for (int32_t i = 0; i < count; ++i) {
      blocks.push_back(pool.block(free_.back()));
      free_.pop_back();
    }
    return blocks;
  }

  // An adapter with a random rank on most modules, from tensors of random dtypes.
  Both make(const PoolMemory& pool) {
    Both both{AdapterWeights(std::size(kSizes)), {}, {}};
    std::vector<LoraShape> shapes;
    std::vector<std::pair<FileTensor, FileTensor>> files;
    for (int m = 0; m < static_cast<int>(std::size(kSizes)); ++m) {
      if (rng_() % 5 == 0) continue;
      const auto rank = static_cast<int64_t>(rng_() % 64) + 1;
      const at::ScalarType stored[] = {at::kFloat, at::kHalf, at::kBFloat16};
      const at::Tensor a = (random({rank, kSizes[m].in}) * 0.2).to(stored[rng_() % 3]),
                       b = (random({kSizes[m].out, rank}) * 0.2).to(stored[rng_() % 3]);
      shapes.push_back({m, rank, kSizes[m].in, kSizes[m].out, 0.5f});
      files.emplace_back(FileTensor(a, rng_() % 2), FileTensor(b, rng_() % 4));
      both.owning.set(m, {Weight(a, dtype(), at::kCPU), Weight(b, dtype(), at::kCPU)}, 0.5f);
    }
    auto layout = PanelLayout::make(shapes, dtype(), block_bytes());
    both.blocks = take(pool, layout->blocks());
    std::thread writer([&] {  // a thread other than the engine's
      for (size_t i = 0; i < files.size(); ++i)
        layout->write(i, files[i].first.view(), files[i].second.view(), both.blocks);
    });
    writer.join();
    both.paged = AdapterWeights(std::size(kSizes), std::move(*layout));
    both.paged.place(both.blocks);
    return both;
  }

  at::Generator generator_;
  std::mt19937 rng_{7};
  std::vector<int32_t> free_;
};
INSTANTIATE_TEST_SUITE_P(Dtypes, PagedAdapters,
                         ::testing::Combine(::testing::Values(at::kFloat, at::kBFloat16),
                                            ::testing::Bool()),
                         [](const auto& info) {
                           return std::string(at::toString(std::get<0>(info.param))) +
                                  (std::get<1>(info.param) ? "InCutPanels" : "");
                         });

// Also compares the padding, because kernels multiply it.
template <typename T>
void expect_equal_panels(const kernels::LoraFactor& a, const kernels::LoraFactor& b, int64_t n,
                         int64_t k) {
  const auto left = kernels::panels_of_factor<T>(a, n, k),
             right = kernels::panels_of_factor<T>(b, n, k);
  constexpr int64_t inputs = kernels::kVectorInputs<T>;
  for (int64_t p = 0; p < kernels::panels_of(n); ++p)
    for (int64_t v = 0; v < (k + inputs - 1) / inputs; ++v)
      ASSERT_EQ(std::memcmp(left.vector(p, v), right.vector(p, v), 64), 0)
          << "panel " << p << " vector " << v << " of [" << n << ", " << k << "]";
}

TEST_P(PagedAdapters, PanelsEqualOwningForm) {
  const PoolMemory pool = make_pool();
  int cut = 0, cut_panels = 0;
  for (int i = 0; i < 12; ++i) {
    const Both both = make(pool);
    for (size_t m = 0; m < std::size(kSizes); ++m) {
      const int module = static_cast<int>(m);
      ASSERT_EQ(both.paged.touches(module), both.owning.touches(module));
      if (!both.paged.touches(module)) continue;
      const kernels::LoraModule &mine = *both.paged.module(module),
                                &owned = *both.owning.module(module);
      ASSERT_EQ(mine.rank, owned.rank);
      EXPECT_EQ(mine.scale, owned.scale);
      cut += mine.b.pieces != nullptr;
      cut_panels += mine.a.inputs_per_piece > 0;
      const auto compare = [&](auto t) {
        using T = decltype(t);
        expect_equal_panels<T>(mine.a, owned.a, mine.rank, mine.in);
        expect_equal_panels<T>(mine.b, owned.b, mine.out, mine.rank);
      };
      dtype() == at::kFloat ? compare(float{}) : compare(kernels::bf16{});
    }
    EXPECT_TRUE(std::ranges::equal(both.paged.touched(), both.owning.touched()));
    EXPECT_EQ(both.paged.format(), both.owning.format());
  }
  EXPECT_GT(cut, 3) << "factors in several pieces";
  EXPECT_EQ(cut_panels > 3, cuts());
}

TEST_P(PagedAdapters, ProjectionsEqualOwningForm) {
  const PoolMemory pool = make_pool();
  std::vector<Both> adapters;
  for (int i = 0; i < 6; ++i) adapters.push_back(make(pool));
  std::vector<Weight> bases;
  for (const Size& size : kSizes)
    bases.emplace_back(random({size.out, size.in}) * 0.1, dtype(), at::kCPU);
  for (const int64_t tokens : {1, 6, 18, 200}) {
    LoraBatch owning, paged;
    for (int64_t a = 0; a < 6; ++a) {
      owning.add(tokens * a / 6, tokens * (a + 1) / 6, adapters[a].owning, 0.7f);
      paged.add(tokens * a / 6, tokens * (a + 1) / 6, adapters[a].paged, 0.7f);
    }
    for (int m = 0; m < static_cast<int>(std::size(kSizes)); ++m) {
      const at::Tensor x = random({tokens, kSizes[m].in}).to(dtype());
      expect_alike(linear(x, {&bases[m], m}, paged), linear(x, {&bases[m], m}, owning),
                   std::to_string(tokens) + " tokens, module " + std::to_string(m));
    }
    const at::Tensor x = random({tokens, 130}).to(dtype());
    EXPECT_TRUE(at::equal(gated(x, {&bases[2], 2}, {&bases[4], 4}, paged),
                          gated(x, {&bases[2], 2}, {&bases[4], 4}, owning)));
  }
}

TEST_P(PagedAdapters, MergesEqualOwningForm) {
  const PoolMemory pool = make_pool();
  for (int i = 0; i < 4; ++i) {
    const Both both = make(pool);
    for (int m = 0; m < static_cast<int>(std::size(kSizes)); ++m) {
      if (!both.paged.touches(m)) continue;
      const Weight base(random({kSizes[m].out, kSizes[m].in}), dtype(), at::kCPU);
      const Weight left = base.with_data(at::empty_like(base.data())),
                   right = base.with_data(at::empty_like(base.data()));
      merge(std::vector<Merge>{{&base, &left, &both.paged, m, 0.5f}});
      merge(std::vector<Merge>{{&base, &right, &both.owning, m, 0.5f}});
      EXPECT_TRUE(at::equal(left.unpacked(), right.unpacked())) << "module " << m;
      EXPECT_FALSE(at::equal(left.unpacked(), base.unpacked()));
    }
  }
}

TEST_P(PagedAdapters, RefusedWhileNotResident) {
  const PoolMemory pool = make_pool();
  Both both = make(pool);
  int module = 0;
  while (!both.paged.touches(module)) ++module;
  LoraBatch before;
  before.add(0, 1, both.paged, 1);
  both.paged.unplace();
  EXPECT_FALSE(both.paged.resident());
  EXPECT_EQ(both.paged.module(module)->a.data, nullptr);
  EXPECT_EQ(both.paged.module(module)->a.pieces, nullptr);
  LoraBatch lora;
  EXPECT_THROW(lora.add(0, 1, both.paged, 1), c10::Error);
  EXPECT_TRUE(lora.segments().empty());
  const Size& size = kSizes[module];
  const Weight base(random({size.out, size.in}), dtype(), at::kCPU);
  EXPECT_THROW(merge(std::vector<Merge>{{&base, &base, &both.paged, module, 1}}), c10::Error);
  both.paged.place(both.blocks);
  EXPECT_TRUE(both.paged.resident());
  lora.add(0, 1, both.paged, 1);
  const at::Tensor x = random({1, size.in}).to(dtype());
  EXPECT_TRUE(at::equal(linear(x, {&base, module}, lora), linear(x, {&base, module}, before)));
}

TEST_P(PagedAdapters, MoveToOtherBlocks) {
  const PoolMemory pool = make_pool();
  Both both = make(pool);
  const auto others = take(pool, static_cast<int32_t>(both.blocks.size()));
  for (size_t i = 0; i < others.size(); ++i)
    std::memcpy(others[i], both.blocks[i], pool.block_bytes());
  for (std::byte* block : both.blocks) std::memset(block, 0xff, pool.block_bytes());
  AdapterWeights moved = std::move(both.paged);  // the table points into the object
  moved.place(others);
  LoraBatch lora, owning;
  lora.add(0, 2, moved, 1);
  owning.add(0, 2, both.owning, 1);
  for (int m = 0; m < static_cast<int>(std::size(kSizes)); ++m) {
    const Weight base(random({kSizes[m].out, kSizes[m].in}), dtype(), at::kCPU);
    const at::Tensor x = random({2, kSizes[m].in}).to(dtype());
    expect_alike(linear(x, {&base, m}, lora), linear(x, {&base, m}, owning), "moved");
  }
}

TEST_P(PagedAdapters, RefuseMismatchedTensors) {
  const LoraShape shape{1, 4, 10, 6, 1};
  const PanelLayout layout = *PanelLayout::make({&shape, 1}, dtype(), block_bytes());
  EXPECT_THROW(AdapterWeights(1, layout), c10::Error) << "a model of one module";
  const LoraShape twice[] = {shape, shape};
  EXPECT_THROW(AdapterWeights(2, *PanelLayout::make(twice, dtype(), block_bytes())), c10::Error);
  AdapterWeights paged(2, layout), owning(2);
  EXPECT_FALSE(paged.resident());
  EXPECT_TRUE(owning.resident());
  EXPECT_TRUE(AdapterWeights(2, PanelLayout()).resident()) << "it touches nothing";
  EXPECT_EQ(paged.find(1), nullptr);
  EXPECT_THROW(paged.place({}), c10::Error);
  EXPECT_THROW(owning.place({}), c10::Error);
  EXPECT_THROW(owning.unplace(), c10::Error);
  EXPECT_THROW(paged.set(0,
                         {Weight(random({4, 10}), dtype(), at::kCPU),
                          Weight(random({6, 4}), dtype(), at::kCPU)},
                         1),
               c10::Error);
  const PoolMemory pool(1, block_bytes(), at::kCPU);
  std::byte* const block = pool.block(0);
  const FileTensor a(random({4, 10}), 0), b(random({6, 4}), 0),
      wide(random({4, 10}).to(at::kDouble), 0);
  EXPECT_NO_THROW(layout.write(0, a.view(), b.view(), {&block, 1}));
  EXPECT_THROW(layout.write(0, b.view(), a.view(), {&block, 1}), c10::Error);
  EXPECT_THROW(layout.write(0, wide.view(), b.view(), {&block, 1}), c10::Error);
  EXPECT_THROW(layout.write(0, a.view(), b.view(), {}), c10::Error);
  EXPECT_THROW(layout.write(1, a.view(), b.view(), {&block, 1}), c10::Error);
}

// Values where rounding is delicate: ties, denormals, the largest values, and values that overflow.
TEST_P(PagedAdapters, RoundAsATenDoes) {
  const int64_t rank = 48, in = 512;
  const LoraShape shape{0, rank, in, 16, 1};
  const PanelLayout layout = *PanelLayout::make({&shape, 1}, dtype(), block_bytes() * 8);
  const PoolMemory pool(layout.blocks(), block_bytes() * 8, at::kCPU);
  std::vector<std::byte*> blocks;
  for (int32_t i = 0; i < layout.blocks(); ++i) blocks.push_back(pool.block(i));
  at::Tensor bits =
      at::randint(INT32_MIN, INT32_MAX, {rank, in}, generator_, at::kLong).to(at::kInt);
  bits.slice(0, 0, 16).bitwise_and_(~0xffff).bitwise_or_(0x8000);  // halfway between bf16 values
  bits.slice(0, 16, 20).bitwise_and_(0x007fffff);                  // denormal
  bits.slice(0, 20, 22).fill_(0x7f7fffff);                         // overflows in bf16
  at::Tensor values = bits.view(at::kFloat);
  values = values.where(values.isfinite(), 1);
  const FileTensor b(at::zeros({16, rank}), 0);
  at::Tensor halves = at::randint(INT16_MIN, INT16_MAX, {rank, in}, generator_, at::kLong)
                          .to(at::kShort)
                          .view(at::kHalf);
  halves = halves.where(halves.isfinite(), 1);
  for (const at::Tensor& a : {values, halves, values.to(at::kBFloat16)}) {
    layout.write(0, FileTensor(a, 0).view(), b.view(), blocks);
    AdapterWeights paged(1, layout);
    paged.place(blocks);
    const Weight owned(a, dtype(), at::kCPU);
    const kernels::LoraFactor factor{owned.data().const_data_ptr(), nullptr, 0};
    if (dtype() == at::kFloat)
      expect_equal_panels<float>(paged.module(0)->a, factor, rank, in);
    else
      expect_equal_panels<kernels::bf16>(paged.module(0)->a, factor, rank, in);
  }
}

}  // namespace
}  // namespace valora::ops
