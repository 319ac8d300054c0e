#include "adapters/adapter_digest.h"

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

}  // namespace valora::adapters
