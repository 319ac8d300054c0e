#include "server/metrics/engine_collector.h"

#include <fmt/format.h>

#include <chrono>

#include "server/metrics/adapter_metrics.h"
#include "server/metrics/labelled.h"
#include "server/metrics/memory_metrics.h"

namespace valora::server {
namespace {

using prometheus::Labels;
using prometheus::MetricFamily;
using prometheus::MetricType;

double unix_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

MetricFamily EngineCollector::family(std::string name, std::string help, MetricType type) const {
  MetricFamily out;
  out.name = std::move(name);
  out.help = std::move(help);
  out.type = type;
  return out;
}

MetricFamily EngineCollector::gauge(std::string name, std::string help, double value,
                                    const Labels& more) const {
  MetricFamily out = family(std::move(name), std::move(help), MetricType::Gauge);
  out.metric.push_back(labelled(labels_, more));
  out.metric.back().gauge.value = value;
  return out;
}

MetricFamily EngineCollector::counter(std::string name, std::string help, double value) const {
  MetricFamily out = family(std::move(name), std::move(help), MetricType::Counter);
  out.metric.push_back(labelled(labels_));
  out.metric.back().counter.value = value;
  return out;
}

// The value is a timestamp, and readers use the newest series. There must be only one series, so
// its labels change in place.
// Routers compare the names with the "model" of requests, so the metric lists both the names that
// requests use and the names under which the engine loaded the adapters.
MetricFamily EngineCollector::lora_info(const EngineStats& stats) const {
  const auto joined = [](const std::vector<std::string>& loaded, std::set<std::string> used) {
    used.insert(loaded.begin(), loaded.end());
    return fmt::format("{}", fmt::join(used, ","));
  };
  MetricFamily out = family("vllm:lora_requests_info", "Adapters of running and waiting requests.",
                            MetricType::Gauge);
  out.metric.push_back(
      labelled({{"max_lora", std::to_string(max_loras_)},
                {"running_lora_adapters", joined(stats.running_adapters, activity_.running())},
                {"waiting_lora_adapters", joined(stats.waiting_adapters, activity_.waiting())}}));
  out.metric.back().gauge.value = unix_time();
  return out;
}

MetricFamily EngineCollector::gauges(
    std::string name, std::string help, const char* label,
    std::initializer_list<std::pair<const char*, double>> values) const {
  MetricFamily out = family(std::move(name), std::move(help), MetricType::Gauge);
  for (const auto& [of, value] : values) {
    out.metric.push_back(labelled(labels_, {{label, of}}));
    out.metric.back().gauge.value = value;
  }
  return out;
}

MetricFamily EngineCollector::waiting_by_reason(const EngineStats& stats) const {
  return gauges("vllm:num_requests_waiting_by_reason",
                "Waiting requests: \"capacity\" for a place in the batch, \"deferred\" "
                "until they are prepared.",
                "reason", {{"capacity", stats.waiting}, {"deferred", stats.preparing}});
}

MetricFamily EngineCollector::mode(const EngineStats& stats) const {
  const auto is = [&](const char* name) { return stats.mode == name ? 1.0 : 0.0; };
  return gauges(
      "valora:mode", "Mode in which the last step applied adapters: 1 for that mode, else 0.",
      "mode", {{"unmerged", is("unmerged")}, {"merged", is("merged")}, {"mixture", is("mixture")}});
}

MetricFamily EngineCollector::service(const EngineStats& stats) const {
  MetricFamily out =
      family("valora:application_service_seconds_total",
             "Time of steps that the requests of an application took.", MetricType::Counter);
  for (const TenantService& tenant : stats.tenants) {
    out.metric.push_back(labelled(labels_, {{"application", tenant.tenant}}));
    out.metric.back().counter.value = tenant.seconds;
  }
  return out;
}

MetricFamily EngineCollector::costs(const EngineStats& stats) const {
  return gauges("valora:cost_seconds",
                "Expected cost of a step apart from its tokens, and of one more token.", "of",
                {{"step", stats.step_cost},
                 {"prefill_token", stats.prefill_token_cost},
                 {"decode_token", stats.decode_token_cost}});
}

void EngineCollector::add_steps(const EngineStats& stats, std::vector<MetricFamily>& out) const {
  add_drafts(stats, out);
  out.push_back(counter("valora:engine_steps_total", "Engine steps with work.",
                        static_cast<double>(stats.steps)));
  out.push_back(
      counter("valora:step_seconds_total", "Seconds spent in engine steps.", stats.step_seconds));
  out.push_back(
      counter("valora:step_overhead_seconds_total",
              "Seconds spent in engine steps outside the model's forward pass and sampling.",
              stats.overhead_seconds));
  if (stats.captured_steps > 0) {
    out.push_back(gauge("valora:captured_steps", "Kinds of steps captured as CUDA graphs.",
                        static_cast<double>(stats.captured_steps)));
    out.push_back(counter("valora:replayed_steps_total", "Engine steps replayed from CUDA graphs.",
                          static_cast<double>(stats.replayed_steps)));
  }
  out.push_back(gauge("valora:step_cost_error_median",
                      "Median over the last steps of |predicted / taken - 1| of a step's time.",
                      stats.cost_error_median));
  out.push_back(
      gauge("valora:step_cost_error_p95",
            "95th percentile over the last steps of |predicted / taken - 1| of a step's time.",
            stats.cost_error_p95));
  out.push_back(gauge("valora:step_cost_correction",
                      "Factor by which this process corrects the costs of steps it began with.",
                      stats.cost_correction));
  out.push_back(costs(stats));
  out.push_back(counter("valora:stalls_total",
                        "Times that no request made progress for --stall-timeout.",
                        static_cast<double>(stats.stalls)));
  out.push_back(counter("valora:early_aborts_total",
                        "Sequences refused because they would have missed their target.",
                        static_cast<double>(stats.early_aborts)));
}

void EngineCollector::add_collectives(const EngineStats& stats,
                                      std::vector<MetricFamily>& out) const {
  const auto count = [&](const char* name, const char* help, double value) {
    out.push_back(counter(name, help, value));
  };
  count("valora:collectives_total", "Collectives of the ranks that share the model.",
        static_cast<double>(stats.collectives));
  count("valora:collective_bytes_total", "Bytes that collectives moved between ranks.",
        static_cast<double>(stats.collective_bytes));
  count("valora:collective_seconds_total",
        "Seconds that the first rank spent in collectives, waiting included.",
        stats.collective_seconds);
}

void EngineCollector::add_drafts(const EngineStats& stats, std::vector<MetricFamily>& out) const {
  const auto count = [&](const char* name, const char* help, uint64_t value) {
    out.push_back(counter(name, help, static_cast<double>(value)));
  };
  count("vllm:spec_decode_num_drafts_total", "Steps of requests with guessed tokens.",
        stats.drafts);
  count("vllm:spec_decode_num_draft_tokens_total", "Guessed tokens.", stats.draft_tokens);
  count("vllm:spec_decode_num_accepted_tokens_total", "Guessed tokens that were right.",
        stats.right_drafts);
}

void EngineCollector::add_media(const EngineStats& stats, std::vector<MetricFamily>& out) const {
  const auto count = [&](const char* name, const char* help, uint64_t value) {
    out.push_back(counter(name, help, static_cast<double>(value)));
  };
  count("vllm:mm_cache_queries_total", "Images and videos looked up in the media cache.",
        stats.media_queries);
  count("vllm:mm_cache_hits_total", "Images and videos found in the media cache.",
        stats.media_hits);
  count("valora:visual_cache_queries_total",
        "Visual embeddings looked up, once per step that needs them.", stats.visual_queries);
  count("valora:visual_cache_hits_total",
        "Visual embeddings found in the cache: not computed again.", stats.visual_hits);
  count("valora:visuals_encoded_total",
        "Images, videos and parts of them encoded by the vision tower.", stats.visuals_encoded);
  out.push_back(counter("valora:visual_encode_seconds_total",
                        "Time in which the vision tower ran; on a GPU, in which it was launched.",
                        stats.visual_seconds));
  const auto size = [&](const char* name, const char* help, size_t value) {
    out.push_back(gauge(name, help, static_cast<double>(value)));
  };
  size("valora:media_cache_bytes", "Bytes of prepared images and videos in the media cache.",
       stats.media_bytes);
  size("valora:media_cache_entries", "Prepared images and videos in the media cache.",
       stats.media_entries);
  size("valora:visual_cache_bytes", "Bytes of the cache of visual embeddings.", stats.visual_bytes);
  size("valora:visual_cache_entries",
       "Images, videos and parts of them in the cache of visual embeddings.", stats.visual_entries);
}

std::vector<MetricFamily> EngineCollector::Collect() const {
  const EngineStats stats = engine_.stats();
  const ModelCard& model = engine_.model();
  const std::vector<AdapterCard> adapters = engine_.adapters();
  std::vector<MetricFamily> out;
  out.push_back(
      gauge("vllm:num_requests_running", "Requests in the running batch.", stats.running));
  out.push_back(gauge("vllm:num_requests_waiting",
                      "Requests waiting to be scheduled, including those being prepared.",
                      stats.waiting + stats.preparing));
  out.push_back(waiting_by_reason(stats));
  out.push_back(
      gauge("vllm:kv_cache_usage_perc", "Used share of the KV cache, 0 to 1.", stats.kv_usage));
  out.push_back(gauge("vllm:cache_config_info",
                      "KV cache configuration: tokens per block and number of blocks.", 1,
                      {{"block_size", std::to_string(model.kv_block_tokens)},
                       {"cache_dtype", model.kv_dtype},
                       {"kv_cache_memory_bytes", std::to_string(model.kv_bytes)},
                       {"num_gpu_blocks", std::to_string(model.kv_blocks)}}));
  out.push_back(gauge("valora:kv_token_bytes", "Bytes of the KV of one token.",
                      static_cast<double>(model.kv_token_bytes), {{"dtype", model.kv_dtype}}));
  out.push_back(lora_info(stats));
  add_memory_metrics(stats.memory, labels_, out);
  const auto count = [&](const char* name, const char* help, uint64_t value) {
    out.push_back(counter(name, help, static_cast<double>(value)));
  };
  count("vllm:num_preemptions_total", "Preempted requests.", stats.preemptions);
  count("vllm:prefix_cache_queries_total", "Prompt tokens looked up in the prefix cache.",
        stats.prefix_queries);
  count("vllm:prefix_cache_hits_total", "Prompt tokens found in the prefix cache.",
        stats.prefix_hits);
  add_media(stats, out);
  out.push_back(gauge("valora:num_requests_preparing",
                      "Requests whose media and text are being prepared.", stats.preparing));
  out.push_back(
      gauge("valora:adapters_loaded", "Loaded adapters.", static_cast<double>(adapters.size())));
  add_adapter_metrics(adapters, stats.memory, counts_, labels_, out);
  if (!stats.tenants.empty()) out.push_back(service(stats));
  out.push_back(mode(stats));
  count("valora:mode_switches_total", "Switches between base weights and merged weights.",
        stats.mode_switches);
  count("valora:merges_total", "Adapters merged into weights.", stats.merges);
  out.push_back(counter("valora:merge_seconds_total",
                        "Seconds spent on merging adapters and restoring weights.",
                        stats.merge_seconds));
  if (stats.collectives > 0) add_collectives(stats, out);
  add_steps(stats, out);
  return out;
}

}  // namespace valora::server
