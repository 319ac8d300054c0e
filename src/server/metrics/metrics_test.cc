#include "server/metrics/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "server/testing/echo_script.h"

namespace valora::server {
namespace {

using testing::echo_options;
using ::testing::HasSubstr;
using valora::testing::FakeEngine;

std::vector<std::string> lines_with(const std::string& text, const std::string& start) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(start)) out.push_back(line);
  return out;
}

TEST(Metrics, ExposesEveryNameBeforeTheFirstRequest) {
  FakeEngine engine(echo_options());
  Metrics metrics(engine, "m", 4);
  metrics.http_answered("/health", {.method = "GET", .path = "/health", .status = 200});
  const std::string text = metrics.text();
  for (const char* name : {"vllm:num_requests_running gauge",
                           "vllm:num_requests_waiting gauge",
                           "vllm:kv_cache_usage_perc gauge",
                           "vllm:cache_config_info gauge",
                           "vllm:lora_requests_info gauge",
                           "vllm:prompt_tokens_total counter",
                           "vllm:generation_tokens_total counter",
                           "vllm:request_success_total counter",
                           "vllm:num_preemptions_total counter",
                           "vllm:prefix_cache_queries_total counter",
                           "vllm:prefix_cache_hits_total counter",
                           "vllm:mm_cache_queries_total counter",
                           "vllm:mm_cache_hits_total counter",
                           "vllm:time_to_first_token_seconds histogram",
                           "vllm:inter_token_latency_seconds histogram",
                           "vllm:request_time_per_output_token_seconds histogram",
                           "vllm:e2e_request_latency_seconds histogram",
                           "vllm:request_queue_time_seconds histogram",
                           "vllm:request_prefill_time_seconds histogram",
                           "vllm:request_decode_time_seconds histogram",
                           "vllm:request_inference_time_seconds histogram",
                           "vllm:request_prompt_tokens histogram",
                           "vllm:request_generation_tokens histogram",
                           "vllm:iteration_tokens_total histogram",
                           "vllm:num_requests_waiting_by_reason gauge",
                           "vllm:request_params_n histogram",
                           "vllm:request_params_max_tokens histogram",
                           "vllm:request_num_preemptions histogram",
                           "vllm:request_max_num_generation_tokens histogram",
                           "vllm:request_prefill_kv_computed_tokens histogram",
                           "vllm:prompt_tokens_cached_total counter",
                           "vllm:prompt_tokens_by_source_total counter",
                           "http_requests_total counter",
                           "process_cpu_seconds_total counter",
                           "process_start_time_seconds gauge",
                           "process_resident_memory_bytes gauge",
                           "process_virtual_memory_bytes gauge",
                           "process_open_fds gauge",
                           "process_max_fds gauge",
                           "valora:pool_blocks gauge",
                           "valora:memory_moves_total counter",
                           "valora:mode gauge",
                           "valora:mode_switches_total counter",
                           "valora:merges_total counter",
                           "valora:merge_seconds_total counter"})
    EXPECT_THAT(text, HasSubstr(std::string("# TYPE ") + name + "\n"));
}

TEST(Metrics, AlwaysEmitsExactlyOneLoraSeries) {
  FakeEngine engine(echo_options());
  engine.add_adapter("a");
  const Metrics metrics(engine, "m", 4);
  const std::string start = "vllm:lora_requests_info{";
  const auto empty = lines_with(metrics.text(), start);
  ASSERT_EQ(empty.size(), 1u);
  EXPECT_THAT(empty[0],
              HasSubstr(R"({max_lora="4",running_lora_adapters="",waiting_lora_adapters=""} )"));
  EXPECT_GT(std::stod(empty[0].substr(empty[0].find("} ") + 2)), 1.7e9);

  class Silent final : public ResponseSink {
    void on_output(OutputChunk) override {}
    void on_done(const FinalInfo&) override {}
    void on_error(const Error&) override {}
  };
  GenerateRequest request{.prompt = std::string("!hang"), .adapters = {{"a", 1}}};
  ASSERT_TRUE(engine.submit(request, std::make_shared<Silent>()).ok());
  const auto running = lines_with(metrics.text(), start);
  ASSERT_EQ(running.size(), 1u);
  EXPECT_THAT(running[0], HasSubstr(R"(running_lora_adapters="a")"));
}

TEST(Metrics, MarksTheCurrentModeAmongAllModes) {
  FakeEngine engine(echo_options());
  const auto modes = lines_with(Metrics(engine, "m", 4).text(), "valora:mode{");
  ASSERT_EQ(modes.size(), 3u);
  for (const std::string& line : modes)
    EXPECT_EQ(line.ends_with(" 1"), line.find("mode=\"unmerged\"") != std::string::npos) << line;
}

TEST(Metrics, UsesConventionalBuckets) {
  FakeEngine engine(echo_options());
  const std::string text = Metrics(engine, "m", 4).text();
  const auto bounds = [&](const std::string& name) {
    std::string out;
    for (const std::string& line : lines_with(text, "vllm:" + name + "_bucket{")) {
      const size_t at = line.find("le=\"") + 4;
      out += line.substr(at, line.find('"', at) - at) + " ";
    }
    return out;
  };
  EXPECT_EQ(bounds("time_to_first_token_seconds"),
            "0.001 0.005 0.01 0.02 0.04 0.06 0.08 0.1 0.25 0.5 0.75 1 2.5 5 7.5 10 20 40 80 160 "
            "640 2560 +Inf ");
  EXPECT_EQ(bounds("inter_token_latency_seconds"),
            "0.01 0.025 0.05 0.075 0.1 0.15 0.2 0.3 0.4 0.5 0.75 1 2.5 5 7.5 10 20 40 80 +Inf ");
  EXPECT_EQ(bounds("e2e_request_latency_seconds"),
            "0.3 0.5 0.8 1 1.5 2 2.5 5 10 15 20 30 40 50 60 120 240 480 960 1920 7680 +Inf ");
  EXPECT_EQ(bounds("request_prompt_tokens"), "1 2 5 10 20 50 100 200 500 1000 2000 +Inf ");
}

TEST(Metrics, CountsReportedEvents) {
  FakeEngine engine(echo_options());
  engine.add_adapter("a");
  Metrics metrics(engine, "m", 4);
  metrics.prompt_scheduled({.prompt_tokens = 5, .cached_tokens = 2});
  metrics.generation_tokens(3);
  metrics.choice_finished(FinishReason::kStop);
  metrics.first_token();
  metrics.on_step({.tokens = 12, .sequences = 3, .seconds = 0.1});
  metrics.on_step({.tokens = 1, .sequences = 1, .seconds = 0.1});
  FinalInfo info;
  info.usage = {5, 3, 0};
  info.timings = {.queue_seconds = 1,
                  .adapter_seconds = 0.25,
                  .kv_seconds = 0.5,
                  .prefill_seconds = 2,
                  .decode_seconds = 4,
                  .ttft_seconds = 3,
                  .e2e_seconds = 7};
  info.usage.cached_tokens = 2;
  info.preemptions = 4;
  metrics.request_finished(info, {.n = 3, .max_tokens = 16, .longest = 2});
  const std::string text = metrics.text();
  const std::string labels = R"({engine="0",model_name="m"} )";
  EXPECT_THAT(text, HasSubstr("vllm:prompt_tokens_total" + labels + "5\n"));
  EXPECT_THAT(text, HasSubstr("vllm:generation_tokens_total" + labels + "3\n"));
  EXPECT_THAT(
      text,
      HasSubstr(
          R"(vllm:request_success_total{engine="0",finished_reason="stop",model_name="m"} 1)"));
  EXPECT_THAT(text, HasSubstr("vllm:iteration_tokens_total_sum" + labels + "14\n"));
  EXPECT_THAT(text, HasSubstr("vllm:iteration_tokens_total_count" + labels + "2\n"));
  EXPECT_THAT(text, HasSubstr("vllm:request_params_n_sum" + labels + "3\n"));
  EXPECT_THAT(text, HasSubstr("vllm:request_params_max_tokens_sum" + labels + "16\n"));
  EXPECT_THAT(text, HasSubstr("vllm:request_queue_time_seconds_sum" + labels + "1\n"));
  EXPECT_THAT(text, HasSubstr("valora:request_adapter_wait_seconds_sum" + labels + "0.25\n"));
  EXPECT_THAT(text, HasSubstr("valora:request_kv_wait_seconds_sum" + labels + "0.5\n"));
  EXPECT_THAT(text, HasSubstr("vllm:request_num_preemptions_sum" + labels + "4\n"));
  EXPECT_THAT(text, HasSubstr("vllm:request_max_num_generation_tokens_sum" + labels + "2\n"));
  EXPECT_THAT(text, HasSubstr("vllm:request_prefill_kv_computed_tokens_sum" + labels + "3\n"));
  EXPECT_THAT(text, HasSubstr("vllm:prompt_tokens_cached_total" + labels + "2\n"));
  const auto source = [](const char* name, int tokens) {
    return R"(vllm:prompt_tokens_by_source_total{engine="0",model_name="m",source=")" +
           std::string(name) + "\"} " + std::to_string(tokens) + "\n";
  };
  EXPECT_THAT(text, HasSubstr(source("local_compute", 3)));
  EXPECT_THAT(text, HasSubstr(source("local_cache_hit", 2)));
  EXPECT_THAT(text, HasSubstr("vllm:request_inference_time_seconds_sum" + labels + "6\n"));
  EXPECT_THAT(text, HasSubstr("vllm:request_time_per_output_token_seconds_sum" + labels + "2\n"));
  EXPECT_THAT(text, HasSubstr("vllm:kv_cache_usage_perc" + labels + "0.25\n"));
  EXPECT_THAT(text, HasSubstr("vllm:cache_config_info{engine=\"0\",model_name=\"m\","
                              "block_size=\"16\",cache_dtype=\"int8\",kv_cache_memory_bytes=\"0\","
                              "num_gpu_blocks=\"256\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("valora:kv_token_bytes{engine=\"0\",model_name=\"m\","
                              "dtype=\"int8\"} 66\n"));
  EXPECT_THAT(
      text,
      HasSubstr(R"(valora:adapter_bytes{engine="0",model_name="m",adapter="a",rank="8"} 1024)"));
}

TEST(Metrics, ReportsVisionTowerTime) {
  FakeEngine engine(echo_options());
  const std::string text = Metrics(engine, "m", 4).text();
  const std::string labels = R"({engine="0",model_name="m"} )";
  EXPECT_THAT(text, HasSubstr("valora:visuals_encoded_total" + labels + "6\n"));
  EXPECT_THAT(text, HasSubstr("valora:visual_encode_seconds_total" + labels + "1.5\n"));
}

TEST(Metrics, ReportsStepCostErrors) {
  FakeEngine engine(echo_options());
  const std::string text = Metrics(engine, "m", 4).text();
  const std::string labels = R"({engine="0",model_name="m"} )";
  EXPECT_THAT(text, HasSubstr("valora:step_cost_error_median" + labels + "0.125\n"));
  EXPECT_THAT(text, HasSubstr("valora:step_cost_error_p95" + labels + "0.5\n"));
  EXPECT_THAT(text, HasSubstr("valora:step_cost_correction" + labels + "1.25\n"));
  for (const auto& [of, seconds] : {std::pair{"step", "0.5"}, std::pair{"prefill_token", "0.25"},
                                    std::pair{"decode_token", "0.75"}})
    EXPECT_THAT(text,
                HasSubstr(std::string("valora:cost_seconds{engine=\"0\",model_name=\"m\",of=\"") +
                          of + "\"} " + seconds + "\n"));
  EXPECT_THAT(text, HasSubstr("valora:early_aborts_total" + labels + "3\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE valora:step_cost_correction gauge\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE valora:early_aborts_total counter\n"));
}

TEST(Metrics, CountsHttpRequestsByRoute) {
  FakeEngine engine(echo_options());
  Metrics metrics(engine, "m", 4);
  metrics.http_answered("/health", {.method = "GET", .status = 200, .seconds = 0.2});
  metrics.http_answered("none", {.method = "BREW", .status = 404, .request_bytes = 7});
  const std::string text = metrics.text();
  EXPECT_THAT(text,
              HasSubstr(R"(http_requests_total{handler="/health",method="GET",status="2xx"} 1)"));
  EXPECT_THAT(text,
              HasSubstr(R"(http_requests_total{handler="none",method="other",status="4xx"} 1)"));
  EXPECT_THAT(text, HasSubstr("# TYPE http_request_size_bytes summary\n"));
  EXPECT_THAT(text, HasSubstr(R"(http_request_size_bytes_count{handler="none"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(http_request_size_bytes_sum{handler="none"} 7)"));
  EXPECT_THAT(text, HasSubstr(R"(http_response_size_bytes_sum{handler="none"} 0)"));
  EXPECT_THAT(text, HasSubstr("http_request_duration_seconds_sum{handler=\"/health\","));
}

}  // namespace
}  // namespace valora::server
