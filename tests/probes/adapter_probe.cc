// Reads an adapter like the server and prints the result, for comparison with PEFT.
//
// stdin:  {"modules": [{"name", "in", "out", "kind"}], "aliases": [{"alias", "canonical"}],
//          "hidden_size", "adapter": DIR, "max_rank"}
// stdout: {"targets": [{"module", "rank", "scale"}], "heads": [...], "warnings": [...],
//          "digest", "bytes", "max_rank"} or {"error": {"code", "message"}}
#include <iostream>
#include <iterator>

#include "adapters/adapter_spec.h"
#include "base/json/json.h"

namespace valora::adapters {
namespace {

constexpr const char* kProblemTypes[] = {"single_label_classification",
                                         "multi_label_classification", "regression"};

Result<ModuleTable> read_table(const Json& input) {
  std::vector<Module> modules;
  for (const Json& module : input.value("modules", Json::array())) {
    VALORA_TRY(name, required_field<std::string>(module, "name"));
    VALORA_TRY(in, required_field<int64_t>(module, "in"));
    VALORA_TRY(out, required_field<int64_t>(module, "out"));
    VALORA_TRY(kind, field_or<std::string>(module, "kind", "linear"));
    modules.push_back({std::move(name), in, out});
    for (const ModuleKind known : {ModuleKind::kEmbedding, ModuleKind::kHead, ModuleKind::kOther})
      if (kind == module_kind_name(known)) modules.back().kind = known;
  }
  std::vector<PrefixAlias> aliases;
  for (const Json& alias : input.value("aliases", Json::array())) {
    VALORA_TRY(from, required_field<std::string>(alias, "alias"));
    VALORA_TRY(to, required_field<std::string>(alias, "canonical"));
    aliases.push_back({std::move(from), std::move(to)});
  }
  VALORA_TRY(hidden_size, field_or<int64_t>(input, "hidden_size", 0));
  return ModuleTable(std::move(modules), std::move(aliases), hidden_size);
}

Json to_json(const AdapterSpec& spec, const ModuleTable& modules) {
  Json targets = Json::array(), heads = Json::array();
  for (const LoraTarget& target : spec.targets)
    targets.push_back({{"module", modules.modules()[target.module].name},
                       {"rank", target.rank},
                       {"scale", target.scale}});
  for (const TaskHead& head : spec.heads)
    heads.push_back({{"name", head.name},
                     {"labels", head.labels},
                     {"bias", head.bias.has_value()},
                     {"problem_type", kProblemTypes[static_cast<int>(head.problem_type)]},
                     {"add_generation_prompt", head.add_generation_prompt}});
  return {{"targets", targets},          {"heads", heads},      {"warnings", spec.warnings},
          {"digest", spec.digest.hex()}, {"bytes", spec.bytes}, {"max_rank", spec.max_rank}};
}

Result<Json> probe(const std::string& text) {
  VALORA_TRY(input, parse_json(text, "the input"));
  VALORA_TRY(table, read_table(input));
  VALORA_TRY(dir, required_field<std::string>(input, "adapter"));
  VALORA_TRY(max_rank, field_or<int32_t>(input, "max_rank", AdapterLimits{}.max_rank));
  VALORA_TRY(spec, read_adapter(dir, table, {max_rank}));
  return to_json(spec, table);
}

}  // namespace
}  // namespace valora::adapters

int main() {
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  const auto result = valora::adapters::probe(text);
  valora::Json output;
  if (result.ok())
    output = result.value();
  else
    output["error"] = {{"code", static_cast<int>(result.error().code)},
                       {"message", result.error().message}};
  std::cout << output.dump() << '\n';
  return 0;
}
