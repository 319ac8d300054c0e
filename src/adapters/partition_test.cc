#include "adapters/partition.h"

#include <gtest/gtest.h>

#include <vector>

namespace valora::adapters {
namespace {

TEST(Partition, EveryOutputAndInputBelongsToOneRank) {
  for (const int ranks : {1, 2, 3}) {
    std::vector<int> outputs(36), inputs(12);
    for (int rank = 0; rank < ranks; ++rank) {
      const MatrixSlice by_output = slice_of({Split::kOutputs, 6}, 36, 12, rank, ranks),
                        by_input = slice_of({Split::kInputs, 6}, 36, 12, rank, ranks);
      EXPECT_EQ(by_output.in, (Share{0, 12}));
      EXPECT_EQ(by_input.out, (Shares{{Share{0, 36}}}));
      for (int64_t i = by_output.out.of[0].begin; i < by_output.out.of[0].end; ++i) ++outputs[i];
      for (int64_t i = by_input.in.begin; i < by_input.in.end; ++i) ++inputs[i];
    }
    EXPECT_EQ(outputs, std::vector<int>(36, 1));
    EXPECT_EQ(inputs, std::vector<int>(12, 1));
  }
}

TEST(Partition, RankHasSameUnitsOfEverySection) {
  const Partition partition{Split::kOutputs, 4, {1, 1, 2}};  // 4 heads of 2, 2 and 4 outputs
  const Shares second = slice_of(partition, 32, 5, 1, 2).out;
  EXPECT_EQ(second.size(), 16);
  EXPECT_EQ(second, (Shares{{Share{4, 8}, Share{12, 16}, Share{24, 32}}, 3}));
  EXPECT_EQ(slice_of(partition, 32, 5, 0, 1).out, (Shares{{Share{0, 32}}})) << "all are adjacent";
}

TEST(Partition, RanksShareUnitThatIsOnlyOne) {
  const Partition partition{Split::kOutputs, 1, {1, 1, 1}};
  for (const int rank : {0, 1})
    EXPECT_EQ(slice_of(partition, 24, 5, rank, 2).out, (Shares{{Share{0, 24}}}));
}

}  // namespace
}  // namespace valora::adapters
