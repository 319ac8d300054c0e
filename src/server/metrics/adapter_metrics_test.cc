// Metrics of individual adapters: their values, and the bound on their number.
#include "server/metrics/adapter_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <sstream>

namespace valora::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

AdapterCard adapter(const std::string& name, WeightsPlace place, size_t bytes = 100) {
  AdapterCard card;
  card.name = name;
  card.place = place;
  card.rank = 8;
  card.bytes = bytes;
  card.digest = DigestBuilder().add(std::string_view(name)).finish();
  return card;
}

std::string text_of(const std::vector<AdapterCard>& adapters, const MemoryStats& memory = {},
                    const AdapterCounts& counts = {}) {
  std::vector<prometheus::MetricFamily> families;
  add_adapter_metrics(adapters, memory, counts, {{"engine", "0"}}, families);
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, families);
  return std::move(out).str();
}

size_t times(const std::string& text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(AdapterMetrics, ReportWhereWeightsReside) {
  std::vector<AdapterCard> adapters = {
      adapter("a", WeightsPlace::kPool), adapter("b", WeightsPlace::kHost),
      adapter("c", WeightsPlace::kFile), adapter("d", WeightsPlace::kNone)};
  adapters[0].pinned = true;
  adapters.push_back(adapters[0]);  // another name for the same weights
  adapters.back().name = "again";
  MemoryStats memory{.block_bytes = 32};
  memory.adapter_limit = 10;
  memory.load_times.add(0.003);
  memory.load_times.add(100);
  const std::string text = text_of(adapters, memory);
  const std::string loaded = "vllm:lora_adapter_loaded{engine=\"0\",adapter_name=\"";
  EXPECT_THAT(text, HasSubstr(loaded + R"(a",level="gpu",pinned="true",rank="8"} 1)"));
  EXPECT_THAT(text, HasSubstr(loaded + R"(b",level="cpu",pinned="false",rank="8"} 1)"));
  EXPECT_EQ(times(text, loaded), 3u);
  EXPECT_THAT(text, HasSubstr("vllm:num_gpu_loaded_lora_adapters{engine=\"0\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("vllm:max_gpu_lora_adapters{engine=\"0\"} 3\n"));  // 320 / 100
  const std::string seconds = "vllm:lora_adapter_load_seconds";
  EXPECT_THAT(text, HasSubstr(seconds + "_bucket{engine=\"0\",le=\"0.0025\"} 0\n"));
  EXPECT_THAT(text, HasSubstr(seconds + "_bucket{engine=\"0\",le=\"0.005\"} 1\n"));
  EXPECT_THAT(text, HasSubstr(seconds + "_bucket{engine=\"0\",le=\"+Inf\"} 2\n"));
  EXPECT_THAT(text, HasSubstr(seconds + "_count{engine=\"0\"} 2\n"));
}

TEST(AdapterMetrics, OmitCapacityWithoutAdapters) {
  MemoryStats memory{.block_bytes = 32};
  memory.adapter_limit = 10;
  EXPECT_THAT(text_of({}, memory), Not(HasSubstr("vllm:max_gpu_lora_adapters")));
  EXPECT_THAT(text_of({}, memory),
              HasSubstr("vllm:num_gpu_loaded_lora_adapters{engine=\"0\"} 0\n"));
}

TEST(AdapterMetrics, CoverOnlyTheBusiestAdapters) {
  AdapterCounts counts;
  std::vector<AdapterCard> adapters;
  Usage usage;
  usage.prompt_tokens = 5;
  usage.completion_tokens = 2;
  for (int i = 0; i < 1000; ++i) {
    const std::string name = "adapter-" + std::to_string(i);
    adapters.push_back(adapter(name, i == 999 ? WeightsPlace::kPool : WeightsPlace::kHost));
    for (int request = 0; request < (i < 3 ? 2 : 1); ++request)
      counts.answered({{name, 1}}, usage, {.ttft = 0.2, .tpot = 0.02});
  }
  counts.answered({}, usage, {});
  const std::string text = text_of(adapters, {}, counts);
  EXPECT_EQ(times(text, "vllm:lora_adapter_loaded{"), kMostPlaced);
  EXPECT_EQ(times(text, "valora:adapter_bytes{"), kMostPlaced);
  EXPECT_EQ(times(text, "valora:adapter_requests_total{"), kMostBusy);
  EXPECT_EQ(times(text, "valora:adapter_time_to_first_token_seconds_count{"), kMostBusy);
  for (const char* name : {"adapter-0", "adapter-1", "adapter-2"}) {
    const std::string labels = "{engine=\"0\",adapter_name=\"" + std::string(name) + "\"} ";
    EXPECT_THAT(text, HasSubstr("valora:adapter_requests_total" + labels + "2\n"));
    EXPECT_THAT(text, HasSubstr("valora:adapter_generation_tokens_total" + labels + "4\n"));
  }
  EXPECT_THAT(text, HasSubstr(R"(adapter_name="adapter-999",level="gpu")"));
  EXPECT_THAT(text, Not(HasSubstr(R"(adapter_name="")")));
}

TEST(AdapterMetrics, EscapeNames) {
  AdapterCounts counts;
  const std::string name = "a\\b\"} 1\nvllm:forged 1 <img>";
  counts.answered({{name, 1}}, {}, {});
  const std::string text = text_of({adapter(name, WeightsPlace::kPool)}, {}, counts);
  EXPECT_THAT(text, HasSubstr(R"(adapter_name="a\\b\"} 1\nvllm:forged 1 <img>",level="gpu")"));
  EXPECT_THAT(text, Not(HasSubstr("\nvllm:forged")));
}

}  // namespace
}  // namespace valora::server
