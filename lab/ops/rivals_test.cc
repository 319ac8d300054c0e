// Compares every rival with double-precision loops at small odd shapes.
#include <gtest/gtest.h>

#include "lab/ops/atmm_rivals.h"
#include "lab/ops/paged_sequences.h"
#include "lab/ops/prepacked_linear.h"
#include "lab/ops/random_tensors.h"
#include "lab/ops/rank_row_loops.h"

namespace valora::bench {
namespace {

at::Tensor wide(const at::Tensor& x) { return x.to(at::kDouble); }

at::Tensor expected_products(const AtmmProblem& problem) {
  const at::Tensor y = at::zeros({problem.shape.tokens(), problem.shape.hidden}, at::kDouble);
  for (const AtmmRun& run : problem.runs) {
    const AtmmAdapter& adapter = problem.layers.front()[run.adapter];
    const at::Tensor low =
        at::mm(wide(problem.x.narrow(0, run.begin, run.end - run.begin)), wide(adapter.a).t());
    y.narrow(0, run.begin, run.end - run.begin)
        .add_(at::mm(low, wide(adapter.b).t()), adapter.coefficient);
  }
  return y;
}

TEST(AtmmRivals, AllComputeTheSameResult) {
  const std::vector<AtmmShape> shapes{{1, 1, 33, {3}, "identical"},
                                      {7, 1, 130, {8, 3, 65}, "distinct"},
                                      {5, 1, 600, {16}, "zipf:1.5"},
                                      {9, 1, 64, {4}, "uniform"},
                                      {3, 19, 48, {8, 16}, "distinct"}};
  for (const AtmmShape& shape : shapes) {
    SCOPED_TRACE(shape.label());
    const AtmmProblem problem = make_problem(shape);
    const at::Tensor expected = expected_products(problem);
    const double allowed = 0.03 * (1 + expected.abs().max().item<double>());
    for (const Contender& c :
         {our_products(problem, kOurs), our_products(problem, "tile", kernels::CpuTile{4, 2, 1}),
          aten_products(problem), rank_row_products(problem), static_tile_products(problem),
          einsum_products(problem)}) {
      EXPECT_GT(expected.abs().max().item<double>(), 0.1);
      EXPECT_LE((wide(c.result()) - expected).abs().max().item<double>(), allowed) << c.name;
      c.run();  // result() must not contain this sum
      EXPECT_LE((wide(c.result()) - expected).abs().max().item<double>(), allowed)
          << c.name << ", run again";
    }
  }
}

TEST(AtmmProblem, RunsCoverTheTokensInOrder) {
  for (const char* popularity : {"distinct", "uniform", "zipf:1.5", "identical"}) {
    const AtmmProblem problem = make_problem({9, 4, 16, {2}, popularity});
    int64_t end = 0;
    for (size_t i = 0; i < problem.runs.size(); ++i) {
      EXPECT_EQ(problem.runs[i].begin, end);
      EXPECT_EQ(problem.runs[i].adapter, i) << "each adapter is one run";
      end = problem.runs[i].end;
    }
    EXPECT_EQ(end, 36);
    EXPECT_EQ(problem.adapters(), static_cast<int64_t>(problem.runs.size()));
    const size_t most = std::string(popularity) == "distinct"    ? 9
                        : std::string(popularity) == "identical" ? 1
                                                                 : 8;
    EXPECT_LE(problem.runs.size(), most);
  }
}

TEST(AtmmProblem, WorkCountsEachTokensRank) {
  const AtmmProblem problem = make_problem({4, 1, 100, {2, 8}, "distinct"});
  EXPECT_EQ(problem.work().operations, 4.0 * 100 * (2 + 8 + 2 + 8));
  EXPECT_EQ(problem.work().bytes, 0) << "it lies in the caches";
}

TEST(RankRowLoops, MatchPlainLoops) {
  using kernels::bf16;
  for (const int64_t count : {1, 63, 64, 130, 300}) {
    const at::Tensor x = normal_tensor({count}, at::kBFloat16, 1, 1),
                     rows = normal_tensor({3, count}, at::kBFloat16, 1, 2),
                     y = normal_tensor({count}, at::kBFloat16, 1, 3);
    const auto data = [](const at::Tensor& t) { return static_cast<bf16*>(t.data_ptr()); };
    EXPECT_NEAR(dot_row(data(x), data(rows), count), at::dot(wide(x), wide(rows[0])).item<double>(),
                1e-4 * count);
    const float low[] = {0.5f, -2, 3};
    const bf16* pointers[] = {data(rows), data(rows) + count, data(rows) + 2 * count};
    const at::Tensor expected =
        wide(y) + 0.5 * wide(rows[0]) - 2 * wide(rows[1]) + 3 * wide(rows[2]);
    add_rows(low, pointers, 3, count, data(y));
    EXPECT_TRUE(((wide(y) - expected).abs() <= 0.005 * (0.1 + expected.abs())).all().item<bool>())
        << count;
  }
}

TEST(PrepackedLinear, MatchesThePlainProduct) {
  if (!has_prepacked_linear(at::kBFloat16))
    GTEST_SKIP() << "no prepacked linear with this libtorch on this processor";
  const at::Tensor x = normal_tensor({5, 48}, at::kBFloat16, 1, 1),
                   w = weight_tensor(70, 48, at::kBFloat16, 2);
  const at::Tensor expected = at::mm(wide(x), wide(w).t());
  EXPECT_LE((wide(prepacked_linear(x, prepack_linear(w, 5))) - expected).abs().max().item<double>(),
            0.03);
}

TEST(PagedSequences, AttendLikeContiguousSequences) {
  const AttentionShape shape{2, 37, 3, 4, 2, 16};
  const PagedSequences sequences(shape, 2);
  const at::Tensor q = wide(sequences.queries()).view({2, 3, 4, 16}).transpose(1, 2);
  const at::Tensor k = wide(sequences.keys()).repeat_interleave(2, 1),
                   v = wide(sequences.values()).repeat_interleave(2, 1);
  const at::Tensor mask = at::ones({3, 40}, at::kBool).tril(37);
  const at::Tensor expected =
      at::scaled_dot_product_attention(q, k, v, mask).transpose(1, 2).reshape({6, 64});
  for (const int64_t layer : {0, 1})
    EXPECT_LE((wide(sequences.attend(layer)) - expected).abs().max().item<double>(), 0.03) << layer;
}

TEST(Compete, RefusesARivalWithAnotherResult) {
  const auto value = [](double v) { return [v] { return at::full({2}, v, at::kFloat); }; };
  Bench bench{{.seconds = 0, .min_rounds = 1, .min_sample = 0}, Limits()};
  EXPECT_NO_THROW(compete(bench, {}, {pure(kOurs, value(1)), pure("near", value(1.01))}, 0.02));
  EXPECT_THROW(compete(bench, {}, {pure(kOurs, value(1)), pure("far", value(1.1))}, 0.02),
               c10::Error);
  EXPECT_THROW(compete(bench, {}, {pure(kOurs, value(1)), pure("nan", value(NAN))}, 0.02),
               c10::Error);
  EXPECT_THROW(compete(bench, {},
                       {pure(kOurs, value(1)), pure("shape", [] { return at::ones({3}); })}, 0.02),
               c10::Error);
}

TEST(TimeInTurns, ComparesWithTheLimitsOfWhatIsWorkedOn) {
  Bench bench{{.seconds = 0, .min_rounds = 1, .min_sample = 0}, Limits()};
  const std::vector<Contender> ours{pure(kOurs, [] { return at::ones({2}); })};
  const Measurement reads = time_in_turns(bench, {.bytes = 1e9, .operations = 1}, ours);
  EXPECT_TRUE(reads.bandwidth_bound);
  EXPECT_DOUBLE_EQ(reads.bound_seconds, 1e9 / reads.bandwidth);
  ASSERT_EQ(reads.timings.size(), 1u) << "the limits are no contenders";
  EXPECT_EQ(reads.timings.front().name, kOurs);
  const Measurement computes = time_in_turns(bench, {.operations = 1e9}, ours);
  EXPECT_FALSE(computes.bandwidth_bound);
  EXPECT_DOUBLE_EQ(computes.bound_seconds, 1e9 / computes.arithmetic);
  EXPECT_EQ(computes.bandwidth, 0);
  EXPECT_EQ(time_in_turns(bench, {}, ours).bound_seconds, 0);
}

}  // namespace
}  // namespace valora::bench
