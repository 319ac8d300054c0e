#include "text/models/model.h"

#include "text/json_fields.h"
#include "text/models/bpe.h"

namespace valora::text {

Result<std::unique_ptr<const Model>> make_model(const Json& json, const std::string& where) {
  if (!json.is_object()) return refuse(where, "must be an object");
  // Files without the field, which predate it, are BPE if they have merges.
  const bool untyped_bpe = !json.contains("type") && json.contains("merges");
  if (untyped_bpe) return make_bpe(json, where);
  VALORA_TRY(type, part_type(json, where));
  if (type == "BPE") return make_bpe(json, where);
  return refuse(where, "model " + in_quotes(type) + " is not supported");
}

}  // namespace valora::text
