#include "server/handlers/status/stats_json.h"

#include <algorithm>
#include <ctime>
#include <optional>

#include "server/handlers/streams/stream_stats.h"

namespace valora::server {
namespace {

OrderedJson hits(uint64_t queries, uint64_t found) {
  return {{"queries", queries}, {"hits", found}};
}

OrderedJson moves_json(const MoveStats& moves) {
  return {{"moves", moves.moves},
          {"failed", moves.failed},
          {"bytes", moves.bytes},
          {"seconds", moves.seconds}};
}

OrderedJson state_of(const Service& service) {
  std::string reason;
  const char* state = "ready";
  if (service.draining) {
    state = "draining";
  } else if (!service.engine.healthy()) {
    state = "stopped";
  } else if (reason = service.engine.standstill(); !reason.empty()) {
    state = "stalled";
  }
  return {{"state", state}, {"reason", reason.empty() ? OrderedJson() : OrderedJson(reason)}};
}

OrderedJson model_json(const Service& service) {
  const ModelCard& model = service.engine.model();
  return {{"names", service.base_names},
          {"architecture", model.architecture},
          {"dtype", model.dtype},
          {"device", model.device},
          {"parameters", model.parameters},
          {"weight_bytes", model.weight_bytes},
          {"max_model_len", model.max_model_len},
          {"images", model.images},
          {"videos", model.videos}};
}

// Says whether the caller may load and unload adapters at all; the endpoints decide about each
// adapter.
OrderedJson rights_json(const Service& service, const ServedUser* user) {
  OrderedJson why;
  if (!service.options.allow_runtime_lora_updating)
    why = "loading and unloading at run time is off; it needs --allow-runtime-lora-updating";
  else if (user != nullptr && user->settings.loads.empty())
    why = "this user may not load or unload adapters";
  const bool uploads = why.is_null() && service.uploads.on();
  return {{"user", user == nullptr ? OrderedJson() : OrderedJson(user->settings.name)},
          {"load", why.is_null()},
          {"upload", uploads ? OrderedJson(service.uploads.limits().one) : OrderedJson()},
          {"reason", why},
          {"batches", service.batches != nullptr},
          {"streams", service.streams != nullptr}};
}

OrderedJson step_json(const StepRing::Step& step) {
  const StepRecord& record = step.record;
  return {{"number", step.number},
          {"steps", step.steps},
          {"began", step.began},
          {"ended", step.ended},
          {"seconds", record.seconds},
          {"tokens", record.tokens},
          {"prefill_tokens", record.prefill_tokens},
          {"sequences", record.sequences},
          {"adapters", record.adapters},
          {"mode", record.mode},
          {"switched", record.switched},
          {"merged", record.merged},
          {"weights_seconds", record.weights_seconds}};
}

OrderedJson steps_json(const Service& service, const EngineStats& stats, uint64_t& last_step) {
  OrderedJson out = {{"count", stats.steps},
                     {"seconds", stats.step_seconds},
                     {"overhead_seconds", stats.overhead_seconds},
                     {"mode", stats.mode},
                     {"switches", stats.mode_switches},
                     {"merges", stats.merges},
                     {"merge_seconds", stats.merge_seconds}};
  OrderedJson& last = out["last"] = OrderedJson::array();
  for (const StepRing::Step& step : joined(service.metrics.steps.after(last_step), kMostSteps)) {
    last.push_back(step_json(step));
    last_step = step.number;
  }
  return out;
}

OrderedJson memory_json(const MemoryStats& memory, const ModelCard& model) {
  return {{"block_bytes", memory.block_bytes},
          {"kv_dtype", model.kv_dtype},
          {"kv_token_bytes", model.kv_token_bytes},
          {"blocks",
           {{"total", memory.total},
            {"adapters", memory.adapter_blocks},
            {"running", memory.running_blocks},
            {"history", memory.history_blocks},
            {"invalid", memory.invalid_blocks},
            {"free", memory.free}}},
          {"swap", {{"total", memory.swap_total}, {"used", memory.swap_used}}},
          {"adapters", memory.adapters},
          {"heads", {{"bytes", memory.head_bytes}, {"limit", memory.head_limit}}},
          {"adapters_left", memory.adapters_left},
          {"kv_dropped", memory.kv_dropped},
          {"adapter_loads", moves_json(memory.loads)},
          {"swap_reads", moves_json(memory.reads)},
          {"swap_writes", moves_json(memory.writes)}};
}

OrderedJson process_json() {
  const auto times = ProcessTimes::read();
  if (!times) return nullptr;
  return {{"started", times->started},
          {"cpu_seconds", times->cpu_seconds},
          {"resident_bytes", times->resident_bytes}};
}

OrderedJson totals_json(const Metrics& metrics, const EngineStats& stats) {
  OrderedJson answers = OrderedJson::object();
  for (const auto& [status, count] : metrics.answers_by_status())
    answers[std::to_string(status)] = count;
  const Metrics::TokenTotals tokens = metrics.token_totals();
  return {{"prompt_tokens", tokens.prompt},     {"generated_tokens", tokens.generated},
          {"http_answers", std::move(answers)}, {"preemptions", stats.preemptions},
          {"early_aborts", stats.early_aborts}, {"stalls", stats.stalls},
          {"draft_tokens", stats.draft_tokens}, {"right_drafts", stats.right_drafts}};
}

OrderedJson place_of(const AdapterCard& adapter) {
  switch (adapter.place) {
    case WeightsPlace::kNone: return "heads";
    case WeightsPlace::kPool: return "pool";
    case WeightsPlace::kHost: return "host";
    case WeightsPlace::kFile: return "file";
  }
  return nullptr;
}

OrderedJson last_load_of(const AdapterCard& adapter) {
  if (!adapter.last_load) return nullptr;
  return {{"seconds", adapter.last_load->seconds}, {"ended", adapter.last_load->ended}};
}

}  // namespace

OrderedJson stats_json(const Service& service, const ServedUser* user, uint64_t& last_step) {
  const EngineStats stats = service.engine.stats();
  OrderedJson out = state_of(service);
  out["object"] = "stats";
  out["time"] = std::time(nullptr);
  out["version"] = VALORA_VERSION;
  out["model"] = model_json(service);
  out["rights"] = rights_json(service, user);
  out["requests"] = {{"running", stats.running},
                     {"waiting", {{"capacity", stats.waiting}, {"preparing", stats.preparing}}}};
  out["totals"] = totals_json(service.metrics, stats);
  out["steps"] = steps_json(service, stats, last_step);
  out["memory"] = memory_json(stats.memory, service.engine.model());
  out["hits"] = {{"prefix_tokens", hits(stats.prefix_queries, stats.prefix_hits)},
                 {"adapters", hits(stats.memory.adapter_queries, stats.memory.adapter_hits)},
                 {"media", hits(stats.media_queries, stats.media_hits)},
                 {"visuals", hits(stats.visual_queries, stats.visual_hits)}};
  out["latency"] = latency_json(service.metrics.latencies.summary());
  OrderedJson& applications = out["applications"] = OrderedJson::array();
  for (const auto& application : service.applications.all())
    if (user == nullptr || user->may_name(application->settings.name))
      applications.push_back(application_json(*application, stats));
  out["streams"] = stream_stats_json(service, user);
  out["process"] = process_json();
  return out;
}

OrderedJson adapter_stats_json(const Service& service, const Viewer& viewer) {
  const auto counts = service.metrics.adapter_counts.all();
  OrderedJson out = OrderedJson::array();
  for (const AdapterCard& adapter : service.engine.adapters()) {
    if (!viewer.sees_adapter(adapter.name)) continue;
    const std::string folder = viewer.folder_of(adapter);
    const auto known = counts.find(adapter.name);
    const AdapterCounts::Counts used =
        known == counts.end() ? AdapterCounts::Counts() : known->second;
    OrderedJson heads = OrderedJson::array();
    for (const auto& head : adapter.heads) heads.push_back(head.first);
    out.push_back({{"name", adapter.name},
                   {"path", folder.empty() ? OrderedJson() : OrderedJson(folder)},
                   {"generation", adapter.generation},
                   {"place", place_of(adapter)},
                   {"last_load", last_load_of(adapter)},
                   {"pinned", adapter.pinned},
                   {"rank", adapter.rank},
                   {"bytes", adapter.bytes},
                   {"decoder", adapter.on_decoder},
                   {"vision", adapter.on_visuals},
                   {"heads", std::move(heads)},
                   {"mergeable", adapter.unmergeable.empty()},
                   {"unmergeable", adapter.unmergeable},
                   {"merges_among_others", adapter.merges_among_others},
                   {"requests", used.requests},
                   {"prompt_tokens", used.prompt_tokens},
                   {"generated_tokens", used.generated_tokens},
                   {"last_used", used.last_used},
                   {"loaded", adapter.created}});
  }
  return out;
}

namespace {

template <typename T>
OrderedJson or_null(const std::optional<T>& value) {
  return value ? OrderedJson(*value) : OrderedJson();
}

// `values` holds an optional value for each target.
template <typename Values>
OrderedJson by_target(const Values& values) {
  OrderedJson out = OrderedJson::object();
  out["ttft"] = or_null(values.ttft);
  out["tpot"] = or_null(values.tpot);
  out["e2e"] = or_null(values.e2e);
  return out;
}

double service_of(const EngineStats& stats, const std::string& tenant) {
  const auto found = std::ranges::find(stats.tenants, tenant, &TenantService::tenant);
  return found == stats.tenants.end() ? 0 : found->seconds;
}

OrderedJson quantiles_json(const std::optional<RecentLatencies::Quantiles>& quantiles) {
  if (!quantiles) return nullptr;
  return {{"p50", quantiles->p50}, {"p99", quantiles->p99}};
}

}  // namespace

OrderedJson application_json(const ServedApplication& application, const EngineStats& stats) {
  const Application& settings = application.settings;
  OrderedJson out = OrderedJson::object();
  out["name"] = settings.name;
  out["models"] = settings.models;
  out["targets"] = by_target(settings);
  out["priority"] = settings.priority;
  out["share"] = settings.share;
  out["max_waiting"] = or_null(settings.max_waiting);
  out["rate"] = or_null(settings.rate);
  out["waiting"] = application.admission.waiting();
  out["service_seconds"] = service_of(stats, settings.name);
  out["attainment"] = by_target(application.metrics.attainment());
  const ApplicationMetrics::Ended ended = application.metrics.ended();
  out["requests"] = {{"ok", ended.ok}, {"error", ended.error}, {"refused", ended.refused}};
  out["latency"] = latency_json(application.metrics.latencies());
  return out;
}

OrderedJson latency_json(const RecentLatencies::Summary& latencies) {
  return {{"answers", latencies.answers},
          {"ttft", quantiles_json(latencies.ttft)},
          {"tpot", quantiles_json(latencies.tpot)},
          {"e2e", quantiles_json(latencies.e2e)}};
}

}  // namespace valora::server
