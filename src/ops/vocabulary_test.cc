// Embeddings and logits of adapters, and outputs that they change, against plain arithmetic.
#include "ops/vocabulary.h"

#include <gtest/gtest.h>

#include "ops/linear.h"

namespace valora::ops {
namespace {

constexpr int64_t kTokens = 37, kWidth = 8;

TensorView view_of(const at::Tensor& t) {
  const auto* bytes = static_cast<const uint8_t*>(t.const_data_ptr());
  return {DType::kF32, t.sizes().vec(), {bytes, t.nbytes()}};
}

// In blocks so small that a matrix has several pieces.
class Placed {
 public:
  Placed(const at::Tensor& values, WeightForm form, at::ScalarType dtype) {
    const size_t panel = 16 * static_cast<size_t>(values.size(1)) * c10::elementSize(dtype);
    const size_t block = (panel + 63) / 64 * 64;
    auto layout = PanelLayout::of_matrix(values.size(0), values.size(1), dtype, block, form);
    EXPECT_TRUE(layout.ok());
    EXPECT_GT(layout->blocks(), 1);
    for (int32_t i = 0; i < layout->blocks(); ++i) {
      memory_.push_back(at::empty({static_cast<int64_t>(block) + 64}, at::kByte));
      const auto at = reinterpret_cast<uintptr_t>(memory_.back().data_ptr());
      blocks_.push_back(reinterpret_cast<std::byte*>((at + 63) / 64 * 64));
    }
    matrix = std::make_shared<PlacedMatrix>(std::move(*layout));
    const at::Tensor rows = values.contiguous();
    matrix->layout()->write_rows(0, view_of(rows.slice(0, 0, 32)), blocks_);
    matrix->layout()->write_rows(32, view_of(rows.slice(0, 32)), blocks_);
    EXPECT_FALSE(matrix->resident());
    matrix->place(blocks_);
  }
  std::shared_ptr<PlacedMatrix> matrix;

 private:
  std::vector<at::Tensor> memory_;
  std::vector<std::byte*> blocks_;
};

at::Tensor random_floats(std::vector<int64_t> shape) { return at::randn(shape); }

class VocabularyTest : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  static double tolerance() { return GetParam() == at::kFloat ? 1e-5 : 0.05; }
  // Rounded as the model's values are, in float.
  static at::Tensor rounded(const at::Tensor& t) { return t.to(GetParam()).to(at::kFloat); }
};

TEST_P(VocabularyTest, EmbeddingsAreReplacedThenChanged) {
  at::manual_seed(1);
  const at::Tensor whole = rounded(random_floats({kTokens, kWidth})),
                   low = rounded(random_floats({kTokens + kWidth, 3})),
                   rows = rounded(random_floats({33, kWidth}));
  const at::Tensor tokens = at::tensor({5, 36, 5, 0, 32}, at::kLong);
  const at::Tensor base = random_floats({5, kWidth}).to(GetParam());
  const Placed embedding(whole, WeightForm::kPlain, GetParam()),
      product(low, WeightForm::kPlain, GetParam()), some(rows, WeightForm::kPlain, GetParam());
  VocabularyWeights weights{.embedding_lora = product.matrix, .scale = 2};
  at::Tensor x = base.clone();
  adapt_embeddings(x, tokens, weights, 0.5f);
  const at::Tensor delta =
      at::mm(low.slice(0, 0, kTokens).index_select(0, tokens), low.slice(0, kTokens).t());
  EXPECT_TRUE(at::allclose(x.to(at::kFloat), base.to(at::kFloat) + delta, 0, tolerance()));

  weights.embedding = embedding.matrix;
  x = base.clone();
  adapt_embeddings(x, tokens, weights, 0.5f);
  EXPECT_TRUE(
      at::allclose(x.to(at::kFloat), whole.index_select(0, tokens) + delta, 0, tolerance()));

  VocabularyWeights of_rows{.embedding_rows = some.matrix};
  for (int64_t i = 0; i < 33; ++i) of_rows.embedding_ids.push_back(36 - i);  // not 0, 1, 2, 3
  x = base.clone();
  adapt_embeddings(x, tokens, of_rows, 1);
  EXPECT_TRUE(at::equal(x[0].to(at::kFloat), rows[31]));
  EXPECT_TRUE(at::equal(x[3], base[3]));
}

TEST_P(VocabularyTest, LogitsAreThoseOfTheHeadAndItsRows) {
  at::manual_seed(2);
  const at::Tensor whole = rounded(random_floats({kTokens, kWidth})),
                   rows = rounded(random_floats({33, kWidth})),
                   hidden = random_floats({3, kWidth}).to(GetParam());
  const Placed head(whole, WeightForm::kPanels, GetParam()),
      some(rows, WeightForm::kPlain, GetParam());
  VocabularyWeights weights{.head = head.matrix};
  at::Tensor logits = at::full({3, kTokens}, 7.0f);
  adapt_logits(hidden, weights, logits);
  const at::Tensor expected = at::mm(hidden.to(at::kFloat), whole.t());
  EXPECT_TRUE(at::allclose(logits, expected, 0, 1e-4));

  VocabularyWeights of_rows{.head_rows = some.matrix};
  for (int64_t i = 0; i < 33; ++i) of_rows.head_ids.push_back(36 - i);
  logits.fill_(7);
  adapt_logits(hidden, of_rows, logits);
  EXPECT_TRUE(at::equal(logits.slice(1, 0, 4), at::full({3, 4}, 7.0f)));
  const at::Tensor of_36 = at::mv(hidden.to(at::kFloat), rows[0]);
  EXPECT_TRUE(at::allclose(logits.select(1, 36), of_36, 0, 1e-4));
}

TEST_P(VocabularyTest, OutputsAreScaledWithoutTheirBiasAndShifted) {
  at::manual_seed(3);
  const at::Tensor w = rounded(random_floats({6, kWidth})), bias = random_floats({6}),
                   x = random_floats({4, kWidth}).to(GetParam());
  const Weight weight(w, GetParam(), at::kCPU, bias);
  AdapterWeights adapter(2);
  const at::Tensor gain = random_floats({6}), shift = random_floats({6});
  adapter.set_output(1, {shift, gain});
  LoraBatch lora;
  lora.add_outputs(1, 3, adapter, 0.5f);
  EXPECT_TRUE(lora.changes_output(1) && !lora.changes_output(0) && !lora.changes_output(-1));
  const at::Tensor plain = at::mm(x.to(at::kFloat), w.t());
  at::Tensor expected = plain + bias;
  expected.slice(0, 1, 3).copy_(plain.slice(0, 1, 3) * gain + bias + 0.5 * shift);
  EXPECT_TRUE(
      at::allclose(linear(x, {&weight, 1}, lora).to(at::kFloat), expected, 0.01, tolerance()));
  EXPECT_TRUE(at::allclose(linear_float(x, {&weight, 1}, lora), expected, 0, 1e-4));
  const at::Tensor both = gated(x, {&weight, 1}, {&weight, 0}, lora).to(at::kFloat);
  EXPECT_TRUE(at::allclose(both, at::silu(expected) * (plain + bias), 0.01, tolerance()));
  const LoraBatch cut = lora.part(2, 4);
  ASSERT_EQ(cut.outputs().size(), 1u);
  EXPECT_TRUE(cut.outputs()[0].token_begin == 0 && cut.outputs()[0].token_end == 1);
}

INSTANTIATE_TEST_SUITE_P(Dtypes, VocabularyTest, ::testing::Values(at::kFloat, at::kBFloat16));

}  // namespace
}  // namespace valora::ops
