#include "lab/ops/summary.h"

#include <gtest/gtest.h>

#include "lab/ops/report.h"
#include "lab/ops/single_tile.h"

namespace valora::bench {
namespace {

Measurement measurement(std::string operation, Json shape, double bound,
                        const std::vector<std::pair<std::string, double>>& times) {
  Measurement m;
  m.operation = std::move(operation);
  m.label = "shape";
  m.shape = std::move(shape);
  m.work.bytes = m.bound_seconds = bound;
  m.bandwidth = 1;
  for (const auto& [name, seconds] : times)
    m.timings.push_back({name, {10, seconds, seconds, 1.5 * seconds, 2 * seconds}});
  return m;
}

TEST(GeometricMean, IsTheRootOfTheProduct) {
  EXPECT_DOUBLE_EQ(geometric_mean(std::vector<double>{2, 8}), 4);
  EXPECT_DOUBLE_EQ(geometric_mean(std::vector<double>{0.5, 1, 2}), 1);
  EXPECT_EQ(geometric_mean({}), 0);
}

TEST(OpsSummary, RatiosAreRivalTimeOverOurs) {
  const std::vector<Measurement> measurements{
      measurement("linear", {{"dtype", "bf16"}, {"tokens", 16}}, 0.5, {{"valora", 1}, {"aten", 2}}),
      measurement("linear", {{"dtype", "fp32"}, {"tokens", 16}}, 3, {{"valora", 4}, {"aten", 2}}),
      measurement("linear", {{"dtype", "bf16"}, {"tokens", 64}}, 1, {{"valora", 1}, {"aten", 8}}),
  };
  const Json summary = summarize_ops(measurements);
  EXPECT_DOUBLE_EQ(summary["linear_vs_aten_geomean"], 2);
  EXPECT_DOUBLE_EQ(summary["linear_vs_aten_worst"], 0.5);
  EXPECT_DOUBLE_EQ(summary["linear_bf16_vs_aten_geomean"], 4);
  EXPECT_DOUBLE_EQ(summary["linear_bf16_vs_aten_worst"], 2);
  EXPECT_DOUBLE_EQ(summary["linear_bf16_8_to_32_tokens_vs_aten_geomean"], 2);
  EXPECT_DOUBLE_EQ(summary["linear_share_of_limit_worst"], 0.5);
  EXPECT_DOUBLE_EQ(summary["linear_share_of_limit_geomean"], std::cbrt(0.5 * 0.75 * 1));
}

TEST(OpsSummary, ModeRatiosAreOverTheBaseAndWorstIsTheSlowest) {
  const Json summary = summarize_ops(std::vector<Measurement>{
      measurement("modes", {}, 1, {{"base", 2}, {"merged", 2}, {"unmerged", 4}}),
      measurement("modes", {}, 1, {{"base", 1}, {"merged", 1}, {"unmerged", 8}})});
  EXPECT_DOUBLE_EQ(summary["modes_merged_over_base"], 1);
  EXPECT_DOUBLE_EQ(summary["modes_unmerged_over_base"], 4);
  EXPECT_DOUBLE_EQ(summary["modes_unmerged_over_base_worst"], 8);
  EXPECT_FALSE(summary.contains("modes_vs_unmerged_worst")) << "they are no rivals";
}

TEST(OpsSummary, PagedAdapterRatioIsOverContiguousAdapters) {
  const Json summary = summarize_ops(std::vector<Measurement>{
      measurement("paged_adapters", {}, 1, {{"together", 2}, {"paged", 4}}),
      measurement("paged_adapters", {}, 1, {{"together", 1}, {"paged", 8}})});
  EXPECT_DOUBLE_EQ(summary["paged_adapters_over_together"], 4);
  EXPECT_DOUBLE_EQ(summary["paged_adapters_over_together_worst"], 8);
  EXPECT_FALSE(summary.contains("paged_adapters_vs_paged_worst")) << "they are no rivals";
}

TEST(OpsSummary, UnmeasuredFiguresAreNull) {
  const Json summary = summarize_ops({});
  for (const char* name :
       {"linear_vs_aten_geomean", "linear_vs_aten_worst", "atmm_vs_single_tile_geomean",
        "atmm_vs_single_tile_worst", "atmm_vs_aten_geomean", "atmm_vs_aten_worst",
        "merge_vs_bandwidth_bound", "merge_vs_bandwidth_bound_worst"}) {
    ASSERT_TRUE(summary.contains(name)) << name;
    EXPECT_TRUE(summary[name].is_null()) << name;
  }
}

TEST(OpsSummary, MergeRatioIsTimeOverTheBandwidthBound) {
  const std::vector<Measurement> measurements{
      measurement("merge", {}, 2, {{"valora", 3}, {"aten", 6}}),
      measurement("merge", {}, 1, {{"valora", 6}, {"aten", 6}})};
  const Json summary = summarize_ops(measurements);
  EXPECT_DOUBLE_EQ(summary["merge_vs_bandwidth_bound"], 3);
  EXPECT_DOUBLE_EQ(summary["merge_vs_bandwidth_bound_worst"], 6);
  EXPECT_DOUBLE_EQ(summary["merge_vs_aten_worst"], 1);
}

TEST(OpsSummary, SpreadIsAcrossShapesOfOneSizeAndJitterWithinAShape) {
  std::vector<Measurement> measurements;
  for (const double seconds : {1.0, 2.0, 3.0})
    measurements.push_back(
        measurement("atmm", {{"phase", "decode"}, {"tokens", 4}, {"hidden", 896}, {"cold", false}},
                    0, {{"valora", seconds / 2}, {"dlora", 10 + seconds}}));
  measurements.push_back(
      measurement("atmm", {{"phase", "decode"}, {"tokens", 64}, {"hidden", 896}, {"cold", false}},
                  0, {{"valora", 50}, {"dlora", 50}}));  // the only shape of its size
  const Json summary = summarize_ops(measurements);
  EXPECT_DOUBLE_EQ(summary["atmm_spread"]["valora"], 1.4);
  EXPECT_DOUBLE_EQ(summary["atmm_spread"]["dlora"], 12.8 / 12);
  EXPECT_NEAR(summary["atmm_fluctuation"]["dlora"], 0.8 / 0.4, 1e-12);
  EXPECT_NEAR(summary["atmm_fluctuation"]["valora"], 1, 1e-12);
  EXPECT_DOUBLE_EQ(summary["atmm_jitter"]["dlora"], 1.5);
}

TEST(OpsReport, EndsWithTheSummaryAndNamesEveryRival) {
  OpsRun run;
  run.notes = {{"atmm_single_tile", {{"rows", 4}}}};
  run.measurements = {measurement("linear", {{"dtype", "bf16"}, {"tokens", 16}}, 0.5,
                                  {{"valora", 1}, {"aten", 2}})};
  const Json json = ops_report_json(run);
  EXPECT_EQ(json.rbegin().key(), "summary");
  EXPECT_DOUBLE_EQ(json["measurements"][0]["ratios"]["aten"], 2);
  EXPECT_DOUBLE_EQ(json["measurements"][0]["seconds"]["valora"]["spread"], 1.5);
  const std::string text = ops_report_text(run);
  EXPECT_NE(text.find("2.00x"), std::string::npos) << text;
  EXPECT_NE(text.find("50 % mem"), std::string::npos) << text;
  EXPECT_NE(text.find("linear_vs_aten_geomean"), std::string::npos) << text;
}

TEST(TileSearch, ChoosesTheLeastGeometricMean) {
  const kernels::CpuTile a{1, 1, 8}, b{4, 4, 1}, c{6, 2, 1};
  TileSearch search({a, b, c});
  search.add({1, 2, 3});
  EXPECT_EQ(search.best(), a);
  search.add({40, 2, 3});  // a is 1 · 40, b 2 · 2
  EXPECT_EQ(search.best(), b);
}

TEST(TileSearch, ReportsThePossibleGainOfAChoice) {
  TileSearch search({{1, 1, 1}, {2, 1, 1}});
  EXPECT_EQ(search.most_to_win(), 1) << "nothing was measured";
  search.add({1, 2});
  EXPECT_DOUBLE_EQ(search.most_to_win(), 1) << "one shape has one best tile";
  search.add({4, 1});
  EXPECT_NEAR(search.most_to_win(), std::sqrt(2), 1e-12)
      << "the second tile is best on the whole, twice too slow once";
}

TEST(TileSearch, CandidatesAreDistinctAndFitInRegisters) {
  const auto tiles = candidate_tiles();
  for (size_t i = 0; i < tiles.size(); ++i) {
    EXPECT_LE(tiles[i].rows * tiles[i].panels * tiles[i].chains, 24);
    for (size_t j = 0; j < i; ++j) EXPECT_FALSE(tiles[i] == tiles[j]);
  }
  EXPECT_GT(tiles.size(), 20u);
}

}  // namespace
}  // namespace valora::bench
