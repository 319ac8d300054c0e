#include "adapters/folder/adapter_digest.h"

namespace valora::adapters {
namespace {

void add_tensor(DigestBuilder& digest, const TensorView& tensor) {
  digest.add(static_cast<uint8_t>(tensor.dtype))
      .add(std::span<const int64_t>(tensor.shape))
      .add(tensor.bytes);
}

void add_head(DigestBuilder& digest, const TaskHead& head) {
  digest.add(head.name);
  add_tensor(digest, head.weight);
  digest.add(head.bias.has_value());
  if (head.bias) add_tensor(digest, *head.bias);
  digest.add(head.labels.size());
  for (const std::string& label : head.labels) digest.add(label);
  digest.add(static_cast<uint8_t>(head.problem_type)).add(head.add_generation_prompt);
}

void add_header(DigestBuilder& digest, const TensorView& tensor) {
  digest.add(static_cast<uint8_t>(tensor.dtype)).add(std::span<const int64_t>(tensor.shape));
}

template <typename AddLora>
void add_adapter(DigestBuilder& digest, const AdapterSpec& spec, const ModuleTable& modules,
                 AddLora&& add_lora) {
  digest.add(spec.targets.size());
  for (const LoraTarget& target : spec.targets) {
    digest.add(modules.modules()[target.module].name).add(target.rank).add(target.scale);
    add_lora(digest, target.a);
    add_lora(digest, target.b);
  }
  if (!spec.invocation.empty())
    digest.add("invocation").add(std::span<const int32_t>(spec.invocation));
  digest.add(spec.heads.size());
  for (const TaskHead& head : spec.heads) add_head(digest, head);
  digest.add(spec.task).add(spec.description).add(spec.question);
}

}  // namespace

Digest digest_of_adapter(const AdapterSpec& spec, const ModuleTable& modules) {
  DigestBuilder digest;
  digest.add("adapter");
  add_adapter(digest, spec, modules, add_tensor);
  return digest.finish();
}

Digest digest_of_headers(const AdapterSpec& spec, const ModuleTable& modules,
                         const FileIdentity& file) {
  DigestBuilder digest;
  digest.add("adapter headers");
  digest.add(file.device).add(file.inode).add(file.size).add(file.modified_ns);
  add_adapter(digest, spec, modules, add_header);
  return digest.finish();
}

Digest digest_with_whole_values(const Digest& before, const AdapterSpec& spec,
                                const ModuleTable& modules) {
  if (spec.parts.empty() && spec.shifts.empty() && spec.gains.empty()) return before;
  DigestBuilder digest;
  digest.add("adapter with whole values").add(before).add(spec.parts.size());
  for (const AdapterPart& part : spec.parts) digest.add(part.digest);
  const VocabularyChange& v = spec.vocabulary;
  digest.add(v.embedding).add(v.embedding_lora).add(v.embedding_rows).add(v.head).add(v.head_rows);
  digest.add(v.scale).add(v.tokens).add(std::span<const int64_t>(v.embedding_ids));
  digest.add(std::span<const int64_t>(v.head_ids));
  if (v.head_lora >= 0) digest.add(v.head_lora).add(v.head_scale);
  if (!v.embedding_gain.empty()) digest.add(std::span<const float>(v.embedding_gain));
  for (const auto* all : {&spec.shifts, &spec.gains}) {
    digest.add(all->size());
    for (const OutputValues& output : *all)
      digest.add(modules.modules()[output.module].name).add(std::span<const float>(output.values));
  }
  return digest.finish();
}

}  // namespace valora::adapters
