// Every family's vision tower in pieces: work between the pieces changes no bit of the result.
#include "models/towers/encoding.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include "base/testing/temp_dir.h"
#include "models/registry.h"
#include "models/testing/tiny_towers.h"
#include "ops/device/backend.h"

namespace valora::models {
namespace {

using testing::TinyTower;
using valora::testing::TempDir;

using Way = std::tuple<int, ops::Backend, at::ScalarType>;

class EncodingTest : public ::testing::TestWithParam<Way> {
 protected:
  EncodingTest() {
    const auto [family, backend, dtype] = GetParam();
    ops::set_backend(backend);
    case_ = std::vector<TinyTower (*)()>{testing::qwen2_vl,        testing::qwen2_5_vl,
                                         testing::llava,           testing::qwen3_vl,
                                         testing::idefics3,        testing::internvl,
                                         testing::internvl_chat,   testing::llava_next,
                                         testing::llava_onevision, testing::pixtral,
                                         testing::mistral3,        testing::qwen1_vl}[family]();
    folder_.write("model.safetensors", case_.tensors.text());
    weights_ = Weights::open(folder_.path()).value();
    const ConfigReader config(case_.config, "config.json");
    const Family& found = **find_family(config);
    weights_->set_aliases(read_model_spec(found, config).value().aliases);
    weights_->set_target(dtype, at::kCPU);
    model_ = found.build(config, *weights_, at::kCPU);
    EXPECT_TRUE(weights_->unused().empty()) << weights_->unused()[0];
    first_ = picture(1, 6, 10, 1);
    second_ = picture(2, 4, 6, 2);
    adapter_ = adapter();
  }
  ~EncodingTest() override { ops::set_backend(ops::Backend::kNative); }

  media::VisualInput picture(int t, int h, int w, uint64_t seed) {
    media::VisualInput input;
    if (case_.square) t = 1, h = w = 5;
    if (case_.tiles) h = w = case_.tiles;
    input.grid_t = t, input.grid_h = h, input.grid_w = w;
    input.patch_dim = case_.patch_dim;
    input.tokens = t * h * w / (case_.merge * case_.merge);
    if (case_.tokens) input.tokens = case_.tokens;
    if (case_.newlines) {  // a column of tiles, each with one patch of padding on each side
      input.tile_rows = t - 1, input.tile_columns = 1;
      input.unpadded = {0, 1, h * (t - 1), w - 2};
      input.tokens = h * w + (t > 1 ? input.unpadded.rows * (w - 1) : 1);
    }
    const at::Tensor values =
        at::randn({t * h * w * case_.patch_dim}, at::make_generator<at::CPUGeneratorImpl>(seed));
    const float* data = values.const_data_ptr<float>();
    input.patches = std::vector<float>(data, data + values.numel());
    return input;
  }

  ops::AdapterWeights adapter() {
    const at::ScalarType dtype = std::get<2>(GetParam());
    const auto& modules = model_->spec().modules;
    const auto generator = at::make_generator<at::CPUGeneratorImpl>(7);
    const auto factor = [&](int64_t out, int64_t in) {
      return ops::Weight(at::randn({out, in}, generator), dtype, at::kCPU);
    };
    ops::AdapterWeights weights(modules.modules().size());
    weights.set(*modules.find(case_.adapted), {factor(4, case_.in), factor(case_.out, 4)}, 0.5f);
    return weights;
  }

  std::unique_ptr<Encoding> begin(std::vector<VisualItem> items, PieceSize size) const {
    return model_->begin_encoding(std::move(items), size);
  }
  std::vector<VisualItem> one() const { return {{&first_, {}}}; }
  std::vector<VisualItem> both() const { return {{&first_, {{&adapter_, 2}}}, {&second_, {}}}; }

  static std::vector<at::Tensor> finish(Encoding& encoding, int* pieces = nullptr) {
    for (double left = encoding.left(); !encoding.done(); left = encoding.left()) {
      encoding.advance();
      EXPECT_LE(encoding.left(), left);
      if (pieces) ++*pieces;
    }
    EXPECT_NEAR(encoding.left(), 0, 1e-3);
    return encoding.take();
  }

  static constexpr PieceSize kSmall{.products = 1, .rows = 7};
  static constexpr PieceSize kWhole{.products = 1e18, .rows = 1};

  // ATen's bf16 as a whole: with AMX its sums depend on the number of rows, which single values
  // near 0 show by far.
  static void expect_close(const at::Tensor& a, const at::Tensor& b, size_t item) {
    const auto& [family, backend, dtype] = GetParam();
    const double tolerance = dtype == at::kFloat ? 1e-4 : 0.1;
    if (backend == ops::Backend::kReference && dtype == at::kBFloat16)
      EXPECT_LT((a - b).norm().item<double>(), 0.02 * b.norm().item<double>()) << item;
    else
      EXPECT_TRUE(at::allclose(a, b, tolerance, tolerance)) << item;
  }

  TinyTower case_;
  TempDir folder_;
  std::unique_ptr<Weights> weights_;  // the model's tensors are views of its files
  std::unique_ptr<Model> model_;
  media::VisualInput first_, second_;
  ops::AdapterWeights adapter_;
};

std::string name_of(const ::testing::TestParamInfo<Way>& info) {
  const auto& [family, backend, dtype] = info.param;
  return std::string(std::array{"Qwen2VL", "Qwen2_5VL", "Llava", "Qwen3VL", "Idefics3", "InternVL",
                                "InternVLChat", "LlavaNext", "LlavaOnevision", "Pixtral",
                                "Mistral3", "Qwen1VL"}[family]) +
         (backend == ops::Backend::kNative ? "Native" : "Reference") +
         (dtype == at::kFloat ? "Float" : "Bf16");
}
INSTANTIATE_TEST_SUITE_P(Families, EncodingTest,
                         ::testing::Combine(::testing::Range(0, 12),
                                            ::testing::Values(ops::Backend::kNative,
                                                              ops::Backend::kReference),
                                            ::testing::Values(at::kFloat, at::kBFloat16)),
                         name_of);

TEST_P(EncodingTest, WorkBetweenPiecesChangesNoBit) {
  int pieces = 0;
  const auto alone = finish(*begin(both(), kSmall), &pieces);
  EXPECT_GT(pieces, 30);
  const auto other_alone = finish(*begin(one(), kSmall));
  const auto cut = begin(both(), kSmall), other = begin(one(), kSmall);
  while (!cut->done()) {
    cut->advance();
    if (!other->done()) other->advance();
    at::randn({100, 100}).matmul(at::randn({100, 100}));
    begin({{&second_, {{&adapter_, 1}}}}, kSmall)->advance();  // started and dropped
  }
  const auto embeddings = cut->take(), other_embeddings = finish(*other);
  ASSERT_EQ(embeddings.size(), 2u);
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(at::equal(embeddings[i], alone[i])) << i;
  EXPECT_TRUE(at::equal(other_embeddings[0], other_alone[0]));
  EXPECT_EQ(
      embeddings[0].sizes(),
      (std::vector<int64_t>{first_.tokens, case_.width * (1 + model_->spec().visual_levels)}));
  EXPECT_FALSE(at::equal(embeddings[0], other_alone[0])) << "the adapter changes it";
}

TEST_P(EncodingTest, PieceSizeDoesNotChangeResult) {
  int small_pieces = 0, pieces = 0;
  const auto cut = finish(*begin(both(), kSmall), &small_pieces),
             whole = finish(*begin(both(), kWhole), &pieces), usual = model_->encode(both());
  EXPECT_LT(pieces, small_pieces);
  for (size_t i = 0; i < 2; ++i) {
    expect_close(cut[i], whole[i], i);
    EXPECT_TRUE(at::equal(usual[i], whole[i])) << "so small a tower is not cut";
  }
}

TEST_P(EncodingTest, BatchedItemsEqualSingleItems) {
  const auto together = model_->encode(both());
  for (size_t i = 0; i < 2; ++i)
    expect_close(together[i], model_->encode(std::vector{both()[i]})[0], i);
}

TEST_P(EncodingTest, LargePictureIsSplitWithinLayer) {
  first_ = picture(1, 60, 80, 3);
  if (case_.square || case_.tiles) return;
  int pieces = 0;
  const PieceSize size{.products = 1 << 22, .rows = 128};
  const auto embeddings = finish(*begin(one(), size), &pieces);
  EXPECT_GT(pieces, 20 * testing::kDepth);
  EXPECT_TRUE(embeddings[0].isfinite().all().item<bool>());
}

// The [begin, end) of each piece of a stage.
std::vector<std::pair<int64_t, int64_t>> pieces_of(int64_t rows, double products, PieceSize size) {
  std::vector<std::pair<int64_t, int64_t>> pieces;
  Encoding encoding(size);
  encoding.add(
      {rows, products, [&](int64_t begin, int64_t end) { pieces.push_back({begin, end}); }});
  while (!encoding.done()) encoding.advance();
  return pieces;
}

TEST(EncodingPieces, GpuStageIsOnePieceUnlessImageIsHuge) {
  constexpr double kWidth = 1280, kMlp = 3420;  // Qwen2.5-VL
  const auto products = [](int64_t rows) {      // for the half of a block that attends to all rows
    return kWidth * (2 * static_cast<double>(rows) + kWidth + 3 * kMlp);
  };
  EXPECT_EQ(pieces_of(4096, products(4096), kGpuPieces).size(), 1u);
  EXPECT_EQ(pieces_of(8192, products(8192), kGpuPieces).size(), 1u);
  EXPECT_GT(pieces_of(4096, products(4096), {}).size(), 30u);
  for (const int64_t rows : {8193, 16384, 100'000}) {
    const auto pieces = pieces_of(rows, products(rows), kGpuPieces);
    EXPECT_LE(pieces.size(), static_cast<size_t>(rows) / 2048) << rows;
    int64_t at = 0;
    for (const auto& [begin, end] : pieces) {
      EXPECT_EQ(begin, at);
      EXPECT_LE(end - begin, kGpuPieces.most_rows) << "memory of activations";
      EXPECT_LE(static_cast<double>(end - begin) * products(rows), 1.2e12) << "time";
      at = end;
    }
    EXPECT_EQ(at, rows);
  }
  EXPECT_EQ(pieces_of(8193, 0, kGpuPieces).size(), 2u);
  EXPECT_EQ(pieces_of(0, 1, kGpuPieces).size(), 1u) << "a stage runs even without rows";
}

}  // namespace
}  // namespace valora::models
