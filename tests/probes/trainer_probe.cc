// Runs one training, for comparison with transformers + PEFT.
//
// stdin:  {"model", "dtype", "threads": 0: adaptive, "output": folder of the adapter to write,
//          "init": PEFT folder to start from (optional), "checkpoint": file (optional),
//          "rank", "alpha", "targets": ["decoder" | "projector" | "vision"…],
//          "heads": [{"name", "labels", "multi_label"}], "options": {any of TrainingOptions},
//          "sources": [{"share", "samples": [{"messages", "answer", "weight",
//                       "trained_head": index, "labels": [index…]}]}]}
// stdout: {"losses": [per step], "norms": [...], "rates": [...], "step_seconds": [...], "seconds",
//          "samples_per_second", "peak_bytes"} or {"error": {...}}
#include <ATen/Parallel.h>
#include <sys/resource.h>

#include <iostream>
#include <iterator>

#include "base/log/log.h"
#include "generator/train/peft_writer.h"
#include "generator/train/trainer.h"
#include "probe_request.h"

namespace valora::generator {
namespace {

template <typename T>
void read(const Json& json, const char* key, T& value) {
  if (json.contains(key)) value = json.at(key).get<T>();
}

TrainingOptions read_options(const Json& json) {
  TrainingOptions o;
  read(json, "steps", o.steps);
  read(json, "batch", o.batch);
  read(json, "tokens_per_pass", o.tokens_per_pass);
  read(json, "learning_rate", o.learning_rate);
  read(json, "warmup", o.warmup);
  read(json, "weight_decay", o.weight_decay);
  read(json, "clip", o.clip);
  read(json, "dropout", o.dropout);
  read(json, "recompute", o.recompute);
  read(json, "logits_at_once", o.logits_at_once);
  read(json, "shuffle", o.shuffle);
  read(json, "seed", o.seed);
  read(json, "checkpoint_every", o.checkpoint_every);
  read(json, "visual_cache_bytes", o.visual_cache_bytes);
  return o;
}

// heads: the adapter's.
Result<ExampleRequest> read_sample(const Json& json, size_t index, const Json& heads) {
  VALORA_TRY(request, probe::read_request(json));
  ExampleRequest sample{"sample " + std::to_string(index),
                        [prompt = std::move(request.prompt)] { return Result<Prompt>(prompt); }};
  if (json.contains("answer")) sample.answer = json.at("answer").get<std::string>();
  read(json, "weight", sample.weight);
  if (json.contains("trained_head"))
    sample.head = heads.at(json.at("trained_head").get<size_t>()).at("name").get<std::string>();
  read(json, "labels", sample.labels);
  return sample;
}

Result<std::vector<TrainingSource>> read_sources(const Json& json, const TrainableModel& model) {
  std::vector<TrainingSource> sources;
  const Json heads = json.value("heads", Json::array());
  for (const Json& source : json.at("sources")) {
    std::vector<ExampleRequest> requests;
    for (const Json& sample : source.at("samples")) {
      VALORA_TRY(request, read_sample(sample, requests.size(), heads));
      requests.push_back(std::move(request));
    }
    VALORA_TRY(examples, model.examples(std::move(requests), 1));
    sources.push_back({std::make_shared<const std::vector<Example>>(std::move(examples)),
                       source.value("share", 1.0)});
  }
  return sources;
}

Result<AdapterShape> read_shape(const Json& json, const adapters::ModuleTable& modules) {
  AdapterShape shape{json.at("rank"), json.at("alpha"), {}, {}};
  std::vector<TargetPart> parts;
  for (const std::string& name : json.at("targets").get<std::vector<std::string>>()) {
    VALORA_TRY(part, parse_target_part(name));
    parts.push_back(part);
  }
  VALORA_TRY(targets, target_modules(modules, parts));
  shape.modules = std::move(targets);
  if (json.contains("heads"))
    for (const Json& head : json.at("heads"))
      shape.heads.push_back({head.at("name"), head.at("labels"), head.value("multi_label", false)});
  shape.invocation = json.value("invocation", std::vector<int32_t>());
  return shape;
}

Result<Json> run(const Json& json) {
  EngineOptions engine;
  engine.model_path = json.at("model");
  VALORA_TRY(dtype, parse_dtype(json.value("dtype", "float32")));
  engine.dtype = dtype;
  engine.fetch.allowed_local_path = "/";
  engine.threads = json.value("threads", 1);
  if (engine.threads > 0) at::set_num_threads(engine.threads);
  VALORA_TRY(model, TrainableModel::open(engine));
  const adapters::ModuleTable& modules = model->loaded.model->spec().modules;
  VALORA_TRY(shape, read_shape(json, modules));
  const TrainingOptions options = read_options(json.value("options", Json::object()));
  AdapterParameters parameters(shape, modules, model->loaded.dtype, model->device, options.seed);
  if (json.contains("init")) {
    VALORA_TRY(spec, adapters::read_adapter(json.at("init").get<std::string>(), modules, {}));
    VALORA_CHECK(parameters.assign(spec, modules));
  }
  VALORA_TRY(sources, read_sources(json, *model));
  Json answer{{"losses", Json::array()},
              {"norms", Json::array()},
              {"rates", Json::array()},
              {"step_seconds", Json::array()}};
  const RealClock clock;
  TimePoint begin = clock.now();
  Trainer trainer(*model, options, json.value("checkpoint", ""));
  VALORA_TRY(result,
             trainer.train(parameters, sources, {.progress = [&](const TrainingProgress& p) {
                             answer["losses"].push_back(p.loss);
                             answer["norms"].push_back(p.gradient_norm);
                             answer["rates"].push_back(p.learning_rate);
                             answer["step_seconds"].push_back(seconds(clock.now() - begin));
                             begin = clock.now();
                           }}));
  answer["seconds"] = result.seconds;
  answer["samples_per_second"] = result.samples_per_second;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  answer["peak_bytes"] = static_cast<int64_t>(usage.ru_maxrss) << 10;
  VALORA_CHECK(write_adapter(json.at("output"), parameters, modules,
                             {.base_model = engine.model_path,
                              .task = "probe",
                              .dropout = options.dropout,
                              .bfloat16 = model->loaded.dtype == at::kBFloat16}));
  return answer;
}

Json run_or_error(const Json& json) {
  try {
    auto answer = run(json);
    if (answer.ok()) return *answer;
    return {{"error", {{"message", answer.error().message}, {"param", answer.error().param}}}};
  } catch (const std::exception& e) {
    return {{"error", {{"message", e.what()}}}};
  }
}

}  // namespace
}  // namespace valora::generator

int main() {
  valora::set_up_logging("warning");
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  const valora::Json answer = valora::generator::run_or_error(valora::Json::parse(text));
  std::cout << answer.dump() << std::endl;
  return answer.contains("error") ? 1 : 0;
}
