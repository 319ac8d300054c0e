#include "server/metrics/memory_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

namespace valora::server {
namespace {

using ::testing::HasSubstr;

TEST(MemoryMetrics, ReportOccupancyAndTransfers) {
  MemoryStats memory;
  memory.block_bytes = 4096;
  memory.free = 5;
  memory.adapter_blocks = 7;
  memory.history_blocks = 11;
  memory.running_blocks = 13;
  memory.swap_total = 20;
  memory.swap_used = 17;
  memory.adapter_queries = 9;
  memory.adapter_hits = 6;
  memory.loads = {.moves = 3, .failed = 1, .bytes = 12288, .seconds = 0.5};
  memory.writes = {.moves = 17, .bytes = 69632};
  std::vector<prometheus::MetricFamily> families;
  add_memory_metrics(memory, {{"model_name", "m"}}, families);
  const std::string text = prometheus::TextSerializer().Serialize(families);
  for (const char* line :
       {"valora:pool_blocks{model_name=\"m\",use=\"adapters\"} 7",
        "valora:pool_blocks{model_name=\"m\",use=\"history\"} 11",
        "valora:pool_blocks{model_name=\"m\",use=\"running\"} 13",
        "valora:pool_blocks{model_name=\"m\",use=\"free\"} 5",
        "valora:swap_blocks{model_name=\"m\",use=\"used\"} 17",
        "valora:swap_blocks{model_name=\"m\",use=\"free\"} 3",
        "valora:adapter_hits_total{model_name=\"m\"} 6",
        "valora:memory_moves_total{model_name=\"m\",move=\"load_adapter\"} 3",
        "valora:memory_moves_failed_total{model_name=\"m\",move=\"load_adapter\"} 1",
        "valora:memory_moved_bytes_total{model_name=\"m\",move=\"write_kv\"} 69632",
        "valora:memory_move_seconds_total{model_name=\"m\",move=\"load_adapter\"} 0.5"})
    EXPECT_THAT(text, HasSubstr(std::string(line) + "\n"));
}

}  // namespace
}  // namespace valora::server
