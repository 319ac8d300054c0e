#include "ops/weights/panel_layout.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "kernels/cpu/product/panels.h"
#include "ops/device/pool_memory.h"

namespace valora::ops {
namespace {

std::vector<LoraShape> random_shapes(std::mt19937& rng, int modules) {
  std::vector<LoraShape> shapes;
  const auto size = [&](int64_t most) { return static_cast<int64_t>(rng() % most) + 1; };
  for (int i = 0; i < modules; ++i) shapes.push_back({i, size(64), size(300), size(900), 1});
  return shapes;
}

int64_t panel_bytes(int64_t k, at::ScalarType dtype, WeightForm form) {
  if (form == WeightForm::kPlain) return 16 * k * static_cast<int64_t>(c10::elementSize(dtype));
  return dtype == at::kFloat ? 64 * k : 64 * ((k + 1) / 2);
}

struct Extent {
  size_t begin, end;
};

// The extents of one factor's pieces, per block. Checks that each is whole panels.
void add_extents(const PanelLayout& layout, const PanelLayout::Factor& f,
                 std::vector<std::vector<Extent>>& extents) {
  const int64_t panel = panel_bytes(f.k, layout.dtype(), layout.form());
  int64_t panels = (f.n + 15) / 16;
  const auto pieces = layout.pieces(f);
  ASSERT_EQ(static_cast<int64_t>(pieces.size()),
            (panels + f.panels_per_piece - 1) / f.panels_per_piece);
  if (panels * panel <= static_cast<int64_t>(layout.block_bytes())) {
    EXPECT_EQ(pieces.size(), 1u) << "a factor that fits into a block is in one piece";
  }
  for (const PanelLayout::Piece& piece : pieces) {
    ASSERT_GE(piece.block, 0);
    ASSERT_LT(piece.block, layout.blocks());
    EXPECT_EQ(piece.offset % 64, 0u);
    const int64_t values = std::min(panels, f.panels_per_piece) * panel;
    const auto bytes = static_cast<size_t>((values + 63) / 64 * 64);
    extents[piece.block].push_back({piece.offset, piece.offset + bytes});
    panels -= f.panels_per_piece;
  }
}

void expect_sound(const PanelLayout& layout) {
  std::vector<std::vector<Extent>> extents(layout.blocks());
  for (const PanelLayout::Module& m : layout.modules()) {
    EXPECT_EQ(m.a.n, m.shape.rank);
    EXPECT_EQ(m.a.k, m.shape.in);
    EXPECT_EQ(m.b.n, m.shape.out);
    EXPECT_EQ(m.b.k, m.shape.rank);
    add_extents(layout, m.a, extents);
    add_extents(layout, m.b, extents);
  }
  size_t all = 0, least = SIZE_MAX, second = SIZE_MAX;
  for (auto& block : extents) {
    std::ranges::sort(block, {}, &Extent::begin);
    size_t end = 0, used = 0;
    for (const Extent& e : block) {
      EXPECT_GE(e.begin, end) << "pieces overlap";
      end = e.end;
      used += e.end - e.begin;
    }
    EXPECT_LE(end, layout.block_bytes()) << "a piece straddles blocks";
    all += used;
    second = std::min(second, std::max(used, least));
    least = std::min(least, used);
  }
  EXPECT_EQ(all, layout.bytes());
  if (extents.size() > 1) {
    EXPECT_GT(least + second, layout.block_bytes()) << "two blocks that fit into one";
  }
}

TEST(PanelLayout, PlacesRandomAdaptersWithoutOverlapOrMuchWaste) {
  std::mt19937 rng(1);
  constexpr std::pair<at::ScalarType, WeightForm> kForms[] = {{at::kFloat, WeightForm::kPanels},
                                                              {at::kBFloat16, WeightForm::kPanels},
                                                              {at::kFloat, WeightForm::kPlain},
                                                              {at::kBFloat16, WeightForm::kPlain},
                                                              {at::kHalf, WeightForm::kPlain}};
  for (int i = 0; i < 200; ++i)
    for (const auto& [dtype, form] : kForms) {
      const auto shapes = random_shapes(rng, static_cast<int>(rng() % 40));
      const size_t block =
          pool_block_bytes(rng() % (size_t{200} << 10), largest_panel_bytes(300, 64, dtype, form));
      const auto layout = PanelLayout::make(shapes, dtype, block, form);
      ASSERT_TRUE(layout.ok()) << layout.error().message;
      ASSERT_EQ(layout->modules().size(), shapes.size());
      EXPECT_EQ(layout->block_bytes(), block);
      expect_sound(*layout);
    }
}

TEST(PanelLayout, FillsTheFirstBlockWithRoom) {
  // In panels of 64 bytes, a block has room for 7: A and B take 4 + 2, then 3 + 2, then 1 + 2.
  const LoraShape shapes[] = {{0, 1, 4, 32}, {1, 1, 3, 32}, {2, 1, 1, 32}};
  const auto layout = PanelLayout::make(shapes, at::kFloat, 7 * size_t{64});
  ASSERT_TRUE(layout.ok());
  std::vector<std::pair<int32_t, size_t>> places;
  for (const PanelLayout::Piece& p : layout->pieces()) places.emplace_back(p.block, p.offset / 64);
  EXPECT_EQ(places, (std::vector<std::pair<int32_t, size_t>>{
                        {0, 0}, {0, 4}, {1, 0}, {1, 3}, {0, 6}, {1, 5}}));
  EXPECT_EQ(layout->blocks(), 2);
  EXPECT_EQ(layout->bytes(), 14 * size_t{64});
}

TEST(PanelLayout, CutsFactorLargerThanBlock) {
  const LoraShape shape{0, 2, 1, 16 * 11};  // B: 11 panels of 128 bytes
  const auto layout = PanelLayout::make({&shape, 1}, at::kFloat, 5 * size_t{128} + 64);
  ASSERT_TRUE(layout.ok());
  const PanelLayout::Factor& b = layout->modules()[0].b;
  EXPECT_EQ(b.panels_per_piece, 5);
  EXPECT_EQ(b.piece_count, 3u);
  expect_sound(*layout);
}

TEST(PanelLayout, CutsPanelsOfALargerThanBlock) {
  const LoraShape shape{0, 20, 2000, 8};  // A: two panels of 2000 inputs
  const auto layout = PanelLayout::make({&shape, 1}, at::kFloat, size_t{900} * 64);
  ASSERT_TRUE(layout.ok());
  const PanelLayout::Factor& a = layout->modules()[0].a;
  EXPECT_EQ(a.inputs_per_piece, 704);  // a third of the inputs, rounded up to whole units
  EXPECT_EQ(a.piece_count, 6u);
  std::vector<std::vector<Extent>> extents(layout->blocks());
  size_t bytes = 0;
  for (size_t i = 0; i < a.piece_count; ++i) {
    const PanelLayout::Piece& piece = layout->pieces(a)[i];
    const size_t size = (i < 4 ? 704 : 592) * 64;
    EXPECT_LE(piece.offset + size, layout->block_bytes());
    for (const Extent& e : extents[piece.block])
      EXPECT_TRUE(piece.offset >= e.end || piece.offset + size <= e.begin) << "pieces overlap";
    extents[piece.block].push_back({piece.offset, piece.offset + size});
    bytes += size;
  }
  EXPECT_EQ(layout->bytes(), bytes + 20 * 64) << "A's and B's";
}

TEST(PanelLayout, RefusesUncuttablePanelLargerThanBlock) {
  const LoraShape shape{0, 16, 4864, 896};
  const size_t panel = largest_panel_bytes(4864, 256, at::kBFloat16);
  EXPECT_EQ(panel, size_t{4864} * 16 * 2);
  EXPECT_TRUE(PanelLayout::make({&shape, 1}, at::kBFloat16, panel).ok());
  const auto layout = PanelLayout::make({&shape, 1}, at::kBFloat16, panel - 64, WeightForm::kPlain);
  ASSERT_FALSE(layout.ok());
  EXPECT_EQ(layout.error().code, ErrorCode::kUnprocessable);
  EXPECT_NE(layout.error().message.find("155648"), std::string::npos) << layout.error().message;
  EXPECT_NE(layout.error().message.find("155584"), std::string::npos) << layout.error().message;
  EXPECT_EQ(largest_panel_bytes(8, 256, at::kFloat), size_t{256} * 64) << "of B";
  const LoraShape high{0, 16, 600, 4}, wide{0, 600, 16, 4};
  const size_t least = least_cut_block_bytes(at::kFloat);
  EXPECT_TRUE(PanelLayout::make({&high, 1}, at::kFloat, least).ok());
  EXPECT_FALSE(PanelLayout::make({&high, 1}, at::kFloat, least - 64).ok());
  EXPECT_FALSE(PanelLayout::make({&wide, 1}, at::kFloat, least).ok()) << "panels of B stay whole";
  const LoraShape none{0, 0, 4, 4};
  EXPECT_THROW((void)PanelLayout::make({&none, 1}, at::kFloat, 4096), c10::Error);
}

TEST(PanelLayout, PlainPanelsAreTensorRows) {
  const LoraShape shape{0, 5, 33, 700, 1};
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kHalf}) {
    const size_t block =
        pool_block_bytes(0, largest_panel_bytes(33, 64, dtype, WeightForm::kPlain));
    const auto layout = PanelLayout::make({&shape, 1}, dtype, block, WeightForm::kPlain);
    ASSERT_TRUE(layout.ok());
    const PanelLayout::Module& m = layout->modules()[0];
    EXPECT_GT(m.b.piece_count, 2u);
    const PoolMemory pool(layout->blocks(), block, at::kCPU);
    std::vector<std::byte*> blocks;
    for (int32_t i = 0; i < layout->blocks(); ++i) blocks.push_back(pool.block(i));
    const at::Tensor a = at::arange(5 * 33, at::kFloat).view({5, 33}) / 7,
                     b = (at::arange(700 * 5, at::kFloat).view({700, 5}) / 11).to(at::kHalf);
    const auto bytes_of = [](const at::Tensor& t) {
      return std::span(static_cast<const uint8_t*>(t.const_data_ptr()), t.nbytes());
    };
    layout->write(0, {DType::kF32, {5, 33}, bytes_of(a)}, {DType::kF16, {700, 5}, bytes_of(b)},
                  blocks);
    const auto expect_rows = [&](const PanelLayout::Factor& f, const at::Tensor& values) {
      const at::Tensor rounded = values.to(dtype);
      const auto pieces = layout->pieces(f);
      for (int64_t row = 0; row < f.n; ++row) {
        const auto& piece = pieces[row / (16 * f.panels_per_piece)];
        const std::byte* at = blocks[piece.block] + piece.offset +
                              row % (16 * f.panels_per_piece) * f.k * rounded.element_size();
        ASSERT_EQ(std::memcmp(at, rounded[row].const_data_ptr(), f.k * rounded.element_size()), 0)
            << row;
      }
    };
    expect_rows(m.a, a);
    expect_rows(m.b, b);
  }
  EXPECT_THROW((void)PanelLayout::make({&shape, 1}, at::kHalf, 4096), c10::Error);
}

TEST(PanelLayout, EmptyAdapterTakesNoBlocks) {
  const auto layout = PanelLayout::make({}, at::kFloat, 64);
  ASSERT_TRUE(layout.ok());
  EXPECT_EQ(layout->blocks(), 0);
  EXPECT_EQ(layout->bytes(), 0u);
}

TEST(PoolMemory, BlocksAreContiguous) {
  EXPECT_EQ(pool_block_bytes(100, 20), 128u);
  EXPECT_EQ(pool_block_bytes(64, 640), 640u);
  for (const int32_t count : {3, 5000}) {  // a small allocation, and one on huge pages
    const PoolMemory pool(count, 640, at::kCPU);
    EXPECT_EQ(pool.blocks(), count);
    EXPECT_EQ(pool.as(at::kBFloat16).stride(0), 320);
    EXPECT_EQ(pool.as(at::kBFloat16).numel(), count * 320);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(pool.block(0)) % 64, 0u);
    EXPECT_EQ(pool.block(count - 1) + 640,
              static_cast<std::byte*>(pool.as(at::kBFloat16).data_ptr()) +
                  pool.as(at::kBFloat16).nbytes());
    EXPECT_EQ(pool.as(at::kBFloat16).count_nonzero().item<int64_t>(), 0);
  }
  EXPECT_THROW(PoolMemory(3, 100, at::kCPU), c10::Error);
}

}  // namespace
}  // namespace valora::ops
