// Drives one engine over stdin and stdout, for comparison with transformers and PEFT.
//
// First line: {"model", "mmproj", "dtype", "kernels", "mode", "costs", "tolerance", "merged_share",
// "merge",
//              "threads", "max_model_len", "max_num_seqs", "max_num_batched_tokens",
//              "max_waiting", "pool_memory", "swap_space", "prefix_caching", "max_logprobs",
//              "max_images", "media_workers", "device", "tensor_parallel_size"}; all but "model"
//              are optional →
//              {"model": {...}}, or {"error": {...}} and the program ends. model.cost_key: the
//              names of machine and model that a file for "costs" must have
// Then one command per line, with one line as the answer:
//   {"op": "load", "name", "path", "replace"}   → {"name", "generation", "rank", "warnings"}
//   {"op": "unload", "name"}                    → {}
//   {"op": "submit", "requests": [...]}         → {} at once
//   {"op": "collect"}                           → {"answers": [...]} of all requests since the last
//                                                 collect
//   {"op": "stats"}                             → the engine's counters; "gpu": those of the
//                                                 emulated GPU
// A failed command gives {"error": {"code", "message"}}, a failed request the same in "answers".
#include <iostream>
#include <utility>

#include "api/waiting_calls.h"
#include "base/json/json.h"
#include "base/log/log.h"
#include "engine/start/start_engine.h"
#include "probe_request.h"
#include "probe_sink.h"
#include "scheduler/policies/policy.h"

// The counts of the emulated GPU as JSON, in programs that have one (ops/emulated_gpu/counts.h).
namespace valora::ops::emulated {
[[gnu::weak]] std::string report();
}  // namespace valora::ops::emulated

namespace valora::probe {
namespace {

// Keeps the default if the key is absent.
template <typename T>
Status read_named(const Json& json, const char* key, Result<T> (*parse)(const std::string&),
                  T& value) {
  VALORA_TRY(name, optional_field<std::string>(json, key));
  if (!name) return {};
  VALORA_TRY(parsed, parse(*name));
  value = parsed;
  return {};
}

Status read_policy(const Json& json, SchedulingOptions& options) {
  VALORA_TRY(policy, field_or<std::string>(json, "mode", options.policy));
  options.policy = policy;
  VALORA_TRY(costs, field_or<std::string>(json, "costs", ""));
  options.costs = costs;
  VALORA_TRY(tolerance, field_or<double>(json, "tolerance", options.tolerance));
  options.tolerance = tolerance;
  return {};
}

// A constant of the policies that no option of an engine sets.
Result<EngineChanges> read_changes(const Json& json, const SchedulingOptions& options) {
  VALORA_TRY(share, optional_field<double>(json, "merged_share"));
  EngineChanges changes;
  if (share)
    changes.policy = [options, share = *share] {
      return scheduler::make_policy(options.policy, {.tolerance = from_seconds(options.tolerance),
                                                     .merged_share = share})
          .value();
    };
  return changes;
}

Result<EngineOptions> read_options(const Json& json) {
  EngineOptions o;
  VALORA_TRY(model, required_field<std::string>(json, "model"));
  o.model_path = model;
  VALORA_TRY(mmproj, field_or<std::string>(json, "mmproj", ""));
  o.mmproj = mmproj;
  const auto integer = [&](const char* key, int& value) -> Status {
    VALORA_TRY(given, field_or<int32_t>(json, key, value));
    value = given;
    return {};
  };
  VALORA_CHECK(read_named(json, "dtype", parse_dtype, o.dtype));
  VALORA_CHECK(read_named(json, "device", parse_device, o.device));
  VALORA_CHECK(read_named(json, "kernels", parse_kernels, o.kernels));
  VALORA_CHECK(read_named(json, "quantization", parse_quantization, o.quantization));
  VALORA_CHECK(read_named(json, "activations", parse_activations, o.activations));
  VALORA_CHECK(read_named(json, "kv_cache_dtype", parse_kv_cache_dtype, o.kv_cache_dtype));
  VALORA_CHECK(read_named(json, "merge", parse_merge_place, o.merge));
  VALORA_CHECK(read_policy(json, o.scheduling));
  VALORA_CHECK(integer("threads", o.threads));
  VALORA_CHECK(integer("tensor_parallel_size", o.tensor_parallel_size));
  VALORA_CHECK(integer("max_num_seqs", o.max_num_seqs));
  VALORA_CHECK(integer("max_num_batched_tokens", o.max_num_batched_tokens));
  VALORA_CHECK(integer("max_waiting", o.max_waiting));
  VALORA_CHECK(integer("max_logprobs", o.max_logprobs));
  VALORA_CHECK(integer("max_images", o.media_limits.images));
  VALORA_CHECK(integer("media_workers", o.media_workers));
  VALORA_TRY(max_model_len, optional_field<int32_t>(json, "max_model_len"));
  o.max_model_len = max_model_len;
  VALORA_TRY(pool_memory, optional_field<int64_t>(json, "pool_memory"));
  o.memory.pool_bytes = pool_memory;
  VALORA_TRY(swap_space, optional_field<int64_t>(json, "swap_space"));
  o.memory.swap_bytes = swap_space.value_or(0);
  VALORA_TRY(prefix_caching, field_or<bool>(json, "prefix_caching", o.prefix_caching));
  o.prefix_caching = prefix_caching;
  o.fetch.allowed_local_path = "/";
  return o;
}

Result<Json> load(serving::LocalEngine& engine, const Json& command) {
  VALORA_TRY(name, required_field<std::string>(command, "name"));
  VALORA_TRY(path, required_field<std::string>(command, "path"));
  VALORA_TRY(replace, field_or<bool>(command, "replace", false));
  VALORA_TRY(card, load_adapter_sync(engine, {.name = name, .path = path, .replace = replace}));
  return Json{{"name", card.name},
              {"generation", card.generation},
              {"rank", card.rank},
              {"warnings", card.warnings}};
}

Result<Json> unload(serving::LocalEngine& engine, const Json& command) {
  VALORA_TRY(name, required_field<std::string>(command, "name"));
  VALORA_CHECK(unload_adapter_sync(engine, name));
  return Json::object();
}

struct Submitted {
  std::shared_ptr<ProbeSink> sink;
  Result<RequestHandle> handle;
  std::optional<int> cancel_after;
};

Json finish(serving::LocalEngine& engine, const Submitted& request) {
  if (!request.handle.ok()) return error_json(request.handle.error());
  if (request.cancel_after && request.sink->wait_for_tokens(*request.cancel_after)) {
    engine.cancel(*request.handle);
    return {{"cancelled", true}};
  }
  return request.sink->wait();
}

Result<Json> submit(serving::LocalEngine& engine, const Json& command,
                    std::vector<Submitted>& submitted) {
  for (const Json& json : command.at("requests")) {
    VALORA_TRY(request, read_request(json));
    VALORA_TRY(cancel_after, optional_field<int32_t>(json, "cancel_after"));
    auto sink = std::make_shared<ProbeSink>();
    submitted.push_back({sink, engine.submit(std::move(request), sink), cancel_after});
  }
  return Json::object();
}

Json collect(serving::LocalEngine& engine, std::vector<Submitted> submitted) {
  Json answers = Json::array();
  answers.get_ref<Json::array_t&>().resize(submitted.size());
  // First waits for the requests to be cancelled, while the others run.
  for (const bool cancelled : {true, false})
    for (size_t i = 0; i < submitted.size(); ++i)
      if (submitted[i].cancel_after.has_value() == cancelled)
        answers[i] = finish(engine, submitted[i]);
  return {{"answers", std::move(answers)}};
}

Json stats_json(const EngineStats& s) {
  return {{"running", s.running},
          {"waiting", s.waiting},
          {"kv_usage", s.kv_usage},
          {"preemptions", s.preemptions},
          {"adapters_left", s.memory.adapters_left},
          {"prefix_queries", s.prefix_queries},
          {"prefix_hits", s.prefix_hits},
          {"media_queries", s.media_queries},
          {"media_hits", s.media_hits},
          {"visuals_encoded", s.visuals_encoded},
          {"visual_queries", s.visual_queries},
          {"visual_hits", s.visual_hits},
          {"mode", s.mode},
          {"mode_switches", s.mode_switches},
          {"merges", s.merges},
          {"steps", s.steps},
          {"step_seconds", s.step_seconds},
          {"overhead_seconds", s.overhead_seconds},
          {"captured_steps", s.captured_steps},
          {"replayed_steps", s.replayed_steps},
          {"collectives", s.collectives},
          {"collective_bytes", s.collective_bytes},
          {"reads", s.memory.reads.moves}};
}

Result<Json> run(serving::LocalEngine& engine, const std::string& line,
                 std::vector<Submitted>& submitted) {
  VALORA_TRY(command, parse_json(line, "the command"));
  VALORA_TRY(op, required_field<std::string>(command, "op"));
  if (op == "load") return load(engine, command);
  if (op == "unload") return unload(engine, command);
  if (op == "submit") return submit(engine, command, submitted);
  if (op == "collect") return collect(engine, std::exchange(submitted, {}));
  if (op == "stats") {
    Json stats = stats_json(engine.stats());
    if (ops::emulated::report) stats["gpu"] = Json::parse(ops::emulated::report());
    return stats;
  }
  return invalid("the command \"" + op + "\" is unknown", "op");
}

void print(const Result<Json>& answer) {
  const Json json = answer.ok() ? *answer : error_json(answer.error());
  std::cout << json.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
}

Result<std::unique_ptr<serving::LocalEngine>> start(const std::string& line) {
  VALORA_TRY(json, parse_json(line, "the options"));
  VALORA_TRY(options, read_options(json));
  VALORA_TRY(changes, read_changes(json, options.scheduling));
  return start_engine(options, real_clock(), changes);
}

int main_loop() {
  std::string line;
  if (!std::getline(std::cin, line)) return 1;
  auto engine = start(line);
  if (!engine.ok()) {
    print(engine.error());
    return 1;
  }
  const ModelCard& card = (*engine)->model();
  print(Json{{"model",
              {{"architecture", card.architecture},
               {"dtype", card.dtype},
               {"max_model_len", card.max_model_len},
               {"cost_key", {(*engine)->cost_key().machine, (*engine)->cost_key().model}},
               {"kv_dtype", card.kv_dtype},
               {"kv_token_bytes", card.kv_token_bytes},
               {"kv_blocks", card.kv_blocks},
               {"notes", (*engine)->notes()},
               {"kv_block_tokens", card.kv_block_tokens}}}});
  std::vector<Submitted> submitted;
  while (std::getline(std::cin, line)) print(run(**engine, line, submitted));
  return 0;
}

}  // namespace
}  // namespace valora::probe

int main() {
  valora::set_up_logging("warning");
  return valora::probe::main_loop();
}
