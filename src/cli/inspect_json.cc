#include "api/changed_parts_json.h"
#include "cli/inspect_report.h"

namespace valora::cli {
namespace {

// The modules that adapters may target, and whether each is supported.
Json modules_json(const models::ModelSpec& spec) {
  Json modules = Json::array();
  for (const adapters::Module& m : spec.modules.modules())
    modules.push_back({{"name", m.name},
                       {"in", m.in},
                       {"out", m.out},
                       {"kind", adapters::module_kind_name(m.kind)},
                       {"visual", m.visual}});
  return modules;
}

Json aliases_json(const models::ModelSpec& spec) {
  Json aliases = Json::array();
  for (const adapters::PrefixAlias& a : spec.aliases)
    aliases.push_back({{"alias", a.alias}, {"canonical", a.canonical}});
  return aliases;
}

Json spec_json(const models::ModelSpec& spec, int64_t heads) {
  return {{"layers", spec.layers},
          {"hidden_size", spec.hidden},
          {"heads", heads},
          {"kv_heads", spec.kv_heads},
          {"head_dim", spec.head_dim},
          {"vocab_size", spec.vocab},
          {"context_length", spec.max_positions},
          {"images", spec.image_token.has_value()},
          {"videos", spec.video_token.has_value()},
          {"modules", modules_json(spec)},
          {"aliases", aliases_json(spec)}};
}

Json served_json(const ServedWeights& served, int64_t context) {
  Json json{{"dtype", served.dtype},
            {"weight_bytes", served.bytes},
            {"kv_cache_dtype", served.kv_dtype},
            {"kv_bytes_per_token", served.kv_bytes_per_token},
            {"kv_bytes_per_sequence", served.kv_bytes_per_token * context},
            {"default_kv_cache_bytes", served.plan.block_bytes * served.plan.blocks},
            {"default_max_model_len", served.plan.max_model_len}};
  if (served.state_bytes > 0) json["state_bytes_per_sequence"] = served.state_bytes;
  return json;
}

const char* problem_type_name(adapters::ProblemType type) {
  switch (type) {
    case adapters::ProblemType::kSingleLabel: return "single_label_classification";
    case adapters::ProblemType::kMultiLabel: return "multi_label_classification";
    case adapters::ProblemType::kRegression: return "regression";
  }
  return "";
}

Json targets_json(const AdapterReport& report) {
  Json targets = Json::array();
  for (const adapters::LoraTarget& target : report.spec->targets)
    targets.push_back({{"module", report.modules.modules()[target.module].name},
                       {"rank", target.rank},
                       {"scale", target.scale}});
  return targets;
}

Json parts_json(const adapters::AdapterSpec& spec) {
  Json parts = Json::array();
  for (const adapters::AdapterPart& part : spec.parts)
    parts.push_back({{"kind", adapters::part_kind_name(part.kind)},
                     {"shape", {part.rows, part.columns}},
                     {"bytes", part.bytes()},
                     {"digest", part.digest.hex()}});
  return parts;
}

Json heads_json(const adapters::AdapterSpec& spec) {
  Json heads = Json::array();
  for (const adapters::TaskHead& head : spec.heads)
    heads.push_back({{"name", head.name},
                     {"labels", head.labels.list()},
                     {"problem_type", problem_type_name(head.problem_type)},
                     {"add_generation_prompt", head.add_generation_prompt}});
  return heads;
}

Json proof_json(const AdapterProof& proof) {
  Json norms = Json::array(), prompts = Json::array();
  for (const PartNorms& part : proof.norms)
    norms.push_back({{"part", part.part}, {"change", part.change}, {"weights", part.weights}});
  for (const ProvedPrompt& prompt : proof.prompts)
    prompts.push_back({{"prompt", prompt.name},
                       {"logprobs", prompt.without},
                       {"adapted_logprobs", prompt.with},
                       {"mean_difference", prompt.mean_difference()},
                       {"largest_difference", prompt.largest_difference()},
                       {"answer", prompt.answer},
                       {"adapted_answer", prompt.adapted_answer}});
  return {{"changes_answers", proof.changes_answers()}, {"norms", norms}, {"prompts", prompts}};
}

Json or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

}  // namespace

Json inspect_json(const ModelReport& report) {
  Json json = report.spec ? spec_json(*report.spec, report.attention_heads) : Json::object();
  json["kind"] = "model";
  json["path"] = report.path;
  json["servable"] = report.problems.empty();
  json["device"] = "cpu";
  json["problems"] = report.problems;
  json["warnings"] = report.warnings;
  json["architecture"] = or_null(report.architecture);
  json["architecture_known"] = report.known_architecture;
  json["tokenizer_size"] = report.tokenizer_size ? Json(*report.tokenizer_size) : Json();
  json["chat_example"] = report.chat_example ? Json(*report.chat_example) : Json();
  json["stored"] = nullptr;
  if (const auto& stored = report.stored)
    json["stored"] = {
        {"parameters", stored->parameters}, {"bytes", stored->bytes}, {"dtype", stored->dtype}};
  json["quantised"] = nullptr;
  if (report.served && report.served->quantised) {
    const models::QuantisedReport& quantised = *report.served->quantised;
    json["quantised"] = {{"format", quantised.format},         {"encoding", quantised.encoding},
                         {"linears", quantised.linears},       {"integers", quantised.integers},
                         {"parameters", quantised.parameters}, {"kept", quantised.kept}};
  }
  json["served"] = report.served ? served_json(*report.served, report.spec->max_positions) : Json();
  return json;
}

Json inspect_json(const AdapterReport& report, const AdapterProof* proof) {
  Json json;
  json["kind"] = "adapter";
  json["path"] = report.path;
  json["servable"] = report.problems.empty();
  json["problems"] = report.problems;
  json["base_model"] = or_null(report.base_model);
  json["checked_with"] = or_null(report.model_path);
  json["warnings"] = Json::array();
  if (!report.spec) return json;
  const adapters::AdapterSpec& spec = *report.spec;
  json["warnings"] = spec.warnings;
  json["task"] = spec.task;
  json["description"] = spec.description;
  json["question"] = spec.question;
  json["max_rank"] = spec.max_rank;
  json["bytes"] = spec.bytes;
  json["changes"] = changed_parts_json<Json>(report.changes);
  json["idle_targets"] = report.idle_targets;
  json["targets"] = targets_json(report);
  json["parts"] = parts_json(spec);
  json["biases"] = spec.shifts.size();
  json["magnitudes"] = spec.gains.size();
  json["used_alone"] = spec.replaces;
  json["heads"] = heads_json(spec);
  if (proof) json["proof"] = proof_json(*proof);
  return json;
}

}  // namespace valora::cli
