#include "generator/train/peft_writer.h"

#include <algorithm>
#include <set>

#include "base/files/write_file.h"
#include "generator/train/tensor_bytes.h"

namespace valora::generator {
namespace {

std::string last_part(const std::string& name) { return name.substr(name.rfind('.') + 1); }

bool is_number(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// PEFT adapts every module whose name ends in a target name. Uses the last parts of the names if
// they select exactly these modules, otherwise the full names.
std::vector<std::string> target_names(const AdapterShape& shape,
                                      const adapters::ModuleTable& table) {
  std::set<std::string> suffixes, names;
  for (const int module : shape.modules) {
    names.insert(table.modules()[module].name);
    suffixes.insert(last_part(table.modules()[module].name));
  }
  bool exact = std::ranges::none_of(suffixes, is_number);  // "0" of "mlp.0" is too ambiguous
  for (size_t i = 0; i < table.modules().size() && exact; ++i) {
    const std::string& name = table.modules()[i].name;
    exact = !suffixes.contains(last_part(name)) || names.contains(name);
  }
  const std::set<std::string>& chosen = exact ? suffixes : names;
  return {chosen.begin(), chosen.end()};
}

Json config_of(const AdapterParameters& parameters, const adapters::ModuleTable& table,
               const AdapterNotes& notes) {
  const AdapterShape& shape = parameters.shape();
  Json saved;
  for (const HeadShape& head : shape.heads) saved.push_back(head.name);
  Json config{{"peft_type", "LORA"},
              {"task_type", "CAUSAL_LM"},
              {"base_model_name_or_path", notes.base_model},
              {"r", shape.rank},
              {"lora_alpha", shape.alpha},
              {"lora_dropout", notes.dropout},
              {"target_modules", target_names(shape, table)},
              {"modules_to_save", saved},
              {"bias", "none"},
              {"fan_in_fan_out", false},
              {"inference_mode", true},
              {"init_lora_weights", true},
              {"use_rslora", false},
              {"use_dora", false},
              {"rank_pattern", Json::object()},
              {"alpha_pattern", Json::object()}};
  if (!shape.invocation.empty()) config["alora_invocation_tokens"] = shape.invocation;
  return config;
}

Json sidecar_of(const AdapterParameters& parameters, const AdapterNotes& notes) {
  Json sidecar{{"task", notes.task}, {"description", notes.description}};
  if (!notes.question.empty()) sidecar["question"] = notes.question;
  const auto& heads = parameters.shape().heads;
  for (size_t i = 0; i < heads.size(); ++i) {
    Json head{{"name", heads[i].name},
              {"labels", heads[i].labels},
              {"pooling", "last"},
              {"add_generation_prompt", true},
              {"problem_type", heads[i].multi_label ? "multi_label_classification"
                                                    : "single_label_classification"}};
    if (i < notes.head_questions.size()) head["question"] = notes.head_questions[i];
    sidecar["heads"].push_back(std::move(head));
  }
  return sidecar;
}

}  // namespace

Status write_adapter(const std::string& dir, const AdapterParameters& parameters,
                     const adapters::ModuleTable& modules, const AdapterNotes& notes) {
  const at::Tensor values = parameters.values().to(at::kCPU);
  const size_t heads_at = 2 * parameters.shape().modules.size();
  std::vector<at::Tensor> kept;
  std::vector<NamedTensor> tensors;
  for (size_t i = 0; i < parameters.slots().size(); ++i) {
    const ParameterSlot& slot = parameters.slots()[i];
    const at::Tensor part =
        values.narrow(0, slot.offset, slot.size()).view({slot.rows, slot.columns});
    kept.push_back(notes.bfloat16 && i < heads_at ? part.to(at::kBFloat16) : part.contiguous());
  }
  for (size_t i = 0; i < kept.size(); ++i)
    tensors.push_back(named(parameters.slots()[i].name, kept[i]));
  return write_folder(dir, [&](const std::string& staged) -> Status {
    VALORA_CHECK(write_safetensors(staged + "/adapter_model.safetensors", std::move(tensors),
                                   {{"format", "pt"}}));
    VALORA_CHECK(write_file(staged + "/valora.json", sidecar_of(parameters, notes).dump(2) + "\n"));
    return write_file(staged + "/adapter_config.json",
                      config_of(parameters, modules, notes).dump(2) + "\n");
  });
}

}  // namespace valora::generator
