// Adapters' embeddings, logits and output changes, against plain arithmetic, on CPUs and, if there
// is one, on a GPU.
#include "ops/vocabulary/vocabulary.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include "ops/linear/linear.h"
#include "ops/testing/platforms.h"

namespace valora::ops {
namespace {

constexpr int64_t kTokens = 37, kWidth = 8;

TensorView view_of(const at::Tensor& t) {
  const auto* bytes = static_cast<const uint8_t*>(t.const_data_ptr());
  return {DType::kF32, t.sizes().vec(), {bytes, t.nbytes()}};
}

// A matrix placed in blocks small enough to divide it into several pieces. On a GPU panels are
// plain.
class Placed {
 public:
  Placed(const at::Tensor& values, WeightForm form, at::ScalarType dtype, at::Device device) {
    if (!device.is_cpu()) form = WeightForm::kPlain;
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
    if (!device.is_cpu()) move_to(device);
    matrix->place(blocks_);
  }
  std::shared_ptr<PlacedMatrix> matrix;

 private:
  void move_to(at::Device device) {
    for (size_t i = 0; i < blocks_.size(); ++i) {
      const auto shift = blocks_[i] - static_cast<std::byte*>(memory_[i].data_ptr());
      memory_[i] = memory_[i].slice(0, shift).to(device);
      blocks_[i] = static_cast<std::byte*>(memory_[i].data_ptr());
    }
  }

  std::vector<at::Tensor> memory_;
  std::vector<std::byte*> blocks_;
};

class VocabularyTest : public ::testing::TestWithParam<std::tuple<at::ScalarType, at::DeviceType>> {
 protected:
  void SetUp() override {
    if (!device().is_cpu() && !testing_support::has_gpu()) GTEST_SKIP() << "no GPU";
  }
  static at::ScalarType dtype() { return std::get<0>(GetParam()); }
  static at::Device device() {
    return {std::get<1>(GetParam()),
            static_cast<int8_t>(std::get<1>(GetParam()) == at::kCPU ? -1 : 0)};
  }
  static double tolerance() { return dtype() == at::kFloat ? 1e-5 : 0.05; }
  // Rounded to the model's dtype, then back to float.
  static at::Tensor rounded(const at::Tensor& t) { return t.to(dtype()).to(at::kFloat); }
  at::Tensor random_floats(at::IntArrayRef shape) {
    return at::randn(shape, generator_, at::kFloat);
  }
  static at::Tensor on_host(const at::Tensor& t) { return t.to(at::kCPU, at::kFloat); }
  static Placed placed(const at::Tensor& values, WeightForm form = WeightForm::kPlain) {
    return {values, form, dtype(), device()};
  }
  // The base's embeddings, adapted.
  static at::Tensor adapted(const at::Tensor& base, const at::Tensor& tokens,
                            const VocabularyWeights& weights, float coefficient) {
    const at::Tensor x = base.clone().to(device());
    adapt_embeddings(x, tokens, weights, coefficient);
    return on_host(x);
  }
  static at::Tensor adapted_logits(const at::Tensor& hidden, const VocabularyWeights& weights,
                                   int64_t columns) {
    const at::Tensor logits =
        at::full({hidden.size(0), columns}, 7.0f, at::TensorOptions().device(device()));
    adapt_logits(hidden.to(device()), weights, logits);
    return on_host(logits);
  }

  at::Generator generator_ = at::make_generator<at::CPUGeneratorImpl>(5);
};

TEST_P(VocabularyTest, ReplacesEmbeddingsThenAddsLora) {
  const at::Tensor whole = rounded(random_floats({kTokens, kWidth})),
                   low = rounded(random_floats({kTokens + kWidth, 3})),
                   rows = rounded(random_floats({33, kWidth}));
  const at::Tensor tokens = at::tensor({5, 36, 5, 0, 32}, at::kLong);
  const at::Tensor base = random_floats({5, kWidth}).to(dtype()), floats = base.to(at::kFloat);
  const Placed embedding = placed(whole), product = placed(low), some = placed(rows);
  VocabularyWeights weights{.embedding_lora = product.matrix, .scale = 2};
  const at::Tensor delta =
      at::mm(low.slice(0, 0, kTokens).index_select(0, tokens), low.slice(0, kTokens).t());
  EXPECT_TRUE(at::allclose(adapted(base, tokens, weights, 0.5f), floats + delta, 0, tolerance()));

  const at::Tensor gain = random_floats({kWidth});
  weights.embedding_gain.assign(gain.const_data_ptr<float>(),
                                gain.const_data_ptr<float>() + kWidth);
  EXPECT_TRUE(at::allclose(adapted(base, tokens, weights, 0.5f), gain * (floats + delta), 0,
                           3 * tolerance()));
  weights.embedding_gain.pop_back();
  EXPECT_THROW(adapted(base, tokens, weights, 0.5f), c10::Error);
  weights.embedding_gain.clear();

  weights.embedding = embedding.matrix;
  EXPECT_TRUE(at::allclose(adapted(base, tokens, weights, 0.5f),
                           whole.index_select(0, tokens) + delta, 0, tolerance()));
  EXPECT_THROW(adapted(base, at::tensor(std::vector<int64_t>{5, 36, 5, 0, kTokens}), weights, 1),
               c10::Error);

  VocabularyWeights of_rows{.embedding_rows = some.matrix};
  for (int64_t i = 0; i < 33; ++i) of_rows.embedding_ids.push_back(36 - i);  // excludes 0 to 3
  const at::Tensor x = adapted(base, tokens, of_rows, 1);
  EXPECT_TRUE(at::equal(x[0], rows[31]));
  EXPECT_TRUE(at::equal(x[3], floats[3]));
}

TEST_P(VocabularyTest, ReplacesLogitsByHeadAndRows) {
  const at::Tensor whole = rounded(random_floats({kTokens, kWidth})),
                   rows = rounded(random_floats({33, kWidth})),
                   hidden = random_floats({3, kWidth}).to(dtype());
  const Placed head = placed(whole, WeightForm::kPanels), some = placed(rows);
  VocabularyWeights weights{.head = head.matrix};
  const at::Tensor expected = at::mm(hidden.to(at::kFloat), whole.t());
  EXPECT_TRUE(at::allclose(adapted_logits(hidden, weights, kTokens), expected, 0, 1e-4));

  const at::Tensor low = rounded(random_floats({kWidth + kTokens, 3}));
  const Placed product = placed(low);
  weights.head_lora = product.matrix;
  weights.head_scale = 0.5f;
  const at::Tensor delta =
      at::mm(at::mm(hidden.to(at::kFloat), low.slice(0, 0, kWidth)), low.slice(0, kWidth).t());
  for (const int64_t columns : {kTokens, kTokens + 2}) {  // batched with adapters of more tokens
    const at::Tensor logits = adapted_logits(hidden, weights, columns);
    EXPECT_TRUE(at::allclose(logits.slice(1, 0, kTokens), expected + 0.5 * delta, 0, 1e-4));
    EXPECT_TRUE(at::equal(logits.slice(1, kTokens), at::full({3, columns - kTokens}, 7.0f)));
  }

  VocabularyWeights of_rows{.head_rows = some.matrix};
  for (int64_t i = 0; i < 33; ++i) of_rows.head_ids.push_back(36 - i);
  const at::Tensor logits = adapted_logits(hidden, of_rows, kTokens);
  EXPECT_TRUE(at::equal(logits.slice(1, 0, 4), at::full({3, 4}, 7.0f)));
  const at::Tensor of_36 = at::mv(hidden.to(at::kFloat), rows[0]);
  EXPECT_TRUE(at::allclose(logits.select(1, 36), of_36, 0, 1e-4));
}

TEST_P(VocabularyTest, OutputChangeScalesWithoutBiasThenShifts) {
  const at::Tensor w = rounded(random_floats({6, kWidth})), bias = rounded(random_floats({6})),
                   x = random_floats({4, kWidth}).to(dtype()), input = x.to(device());
  const Weight weight(w, dtype(), device(), bias);
  AdapterWeights adapter(2), second(2);
  const at::Tensor gain = random_floats({6}), shift = random_floats({6}),
                   other = random_floats({6});
  adapter.set_output(1, {shift, gain});
  second.set_output(1, {other, {}});
  LoraBatch lora;
  lora.add_outputs(1, 3, adapter, 0.5f);
  lora.add_outputs(2, 4, second, 2);
  EXPECT_TRUE(lora.changes_output(1) && !lora.changes_output(0) && !lora.changes_output(-1));
  const at::Tensor plain = at::mm(x.to(at::kFloat), w.t());
  at::Tensor expected = plain + bias;
  expected.slice(0, 1, 3).copy_(plain.slice(0, 1, 3) * gain + bias + 0.5 * shift);
  expected.slice(0, 2, 4).add_(2 * other);
  EXPECT_TRUE(
      at::allclose(on_host(linear(input, {&weight, 1}, lora)), expected, 0.01, tolerance()));
  EXPECT_TRUE(at::allclose(on_host(linear_float(input, {&weight, 1}, lora)), expected, 0, 1e-4));
  const at::Tensor both = on_host(gated(input, {&weight, 1}, {&weight, 0}, lora));
  EXPECT_TRUE(at::allclose(both, at::silu(expected) * (plain + bias), 0.01, 2 * tolerance()));
  const LoraBatch cut = lora.part(2, 4);
  ASSERT_EQ(cut.outputs().size(), 2u);
  EXPECT_TRUE(cut.outputs()[0].token_begin == 0 && cut.outputs()[0].token_end == 1);
}

INSTANTIATE_TEST_SUITE_P(All, VocabularyTest,
                         ::testing::Combine(::testing::Values(at::kFloat, at::kBFloat16),
                                            ::testing::Values(at::kCPU, at::kCUDA)));

}  // namespace
}  // namespace valora::ops
