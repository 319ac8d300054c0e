#include "adapters/tensors/whole_values.h"

#include <algorithm>
#include <array>
#include <map>

#include "adapters/folder/lora_config.h"
#include "adapters/tensors/tensor_values.h"
#include "base/text/strings.h"

namespace valora::adapters {
namespace {

Digest part_digest(PartKind kind, std::span<const TensorView* const> tensors) {
  DigestBuilder digest;
  digest.add("part").add(static_cast<uint8_t>(kind));
  for (const TensorView* tensor : tensors)
    digest.add(static_cast<uint8_t>(tensor->dtype))
        .add(std::span<const int64_t>(tensor->shape))
        .add(tensor->bytes);
  return digest.finish();
}

class VocabularyChanges {
 public:
  VocabularyChanges(const SafeTensors& file, const AdapterContents& contents,
                    const LoraConfig& config, const ModuleTable& modules, bool tied,
                    AdapterSpec& spec)
      : file_(file),
        contents_(contents),
        config_(config),
        modules_(modules),
        spec_(spec),
        tied_(tied) {}

  // Adds a low-rank product on the embedding, or on an output layer whose number of tokens is the
  // adapter's own.
  Status add_low_rank(const std::vector<LoraTarget>& targets) {
    for (const LoraTarget& target : targets) {
      const bool on_head = is_head(target.module);
      if (!on_head && tied_ && config_.ensure_weight_tying)
        return unprocessable(
            "ensure_weight_tying with LoRA on " + module(target.module).name +
                ", which this model ties to its output layer, is not supported by this version",
            "ensure_weight_tying");
      const LoraHalves& halves = contents_.modules.at(target.module);
      const int64_t tokens = on_head ? target.b.shape[0] : target.a.shape[1],
                    expected = tokens_of(module(target.module).kind);
      if (tokens != expected)
        return unprocessable("the LoRA on " + module(target.module).name + " covers " +
                             std::to_string(tokens) + " tokens, but its weights cover " +
                             std::to_string(expected));
      if (target.a.dtype != target.b.dtype || target.dense)
        return unprocessable("A and B of " + module(target.module).name +
                             (target.dense ? " are block-diagonal (use_bdlora), which cannot be "
                                             "served by this version on a resized vocabulary"
                                           : " have different dtypes"));
      const PartKind kind = on_head ? PartKind::kHeadLora : PartKind::kEmbeddingLora;
      const std::array<const TensorView*, 2> views{halves.a, halves.b};
      VocabularyChange& v = spec_.vocabulary;
      (on_head ? v.head_scale : v.scale) = target.scale;
      (on_head ? v.head_lora : v.embedding_lora) = add({kind,
                                                        {halves.a_tensor, halves.b_tensor},
                                                        target.a.dtype,
                                                        target.a.shape[1] + target.b.shape[0],
                                                        target.rank,
                                                        part_digest(kind, views)});
    }
    return {};
  }

  Status add_copies(const std::vector<ChangedCopy>& changed) {
    for (const ChangedCopy& copy : changed)
      if (!copy.is_bias) {
        int& part = is_head(copy.module) ? spec_.vocabulary.head : spec_.vocabulary.embedding;
        if (part >= 0)
          return unprocessable("the file has two weights of " + module(copy.module).name);
        part = add_matrix(copy, is_head(copy.module) ? PartKind::kHead : PartKind::kEmbedding);
        (is_head(copy.module) ? head_below_rows_ : embedding_below_rows_) = copy.below_rows;
      }
    return tie_copies(changed);
  }

  Status add_token_rows() {
    std::map<int, const TokenIds*> ids;
    for (const TokenIds& named : config_.token_ids) {
      VALORA_TRY(index, named_module(named.module));
      if (!ids.emplace(index, &named).second)
        return unprocessable("trainable_token_indices names " + module(index).name + " twice",
                             "trainable_token_indices");
    }
    for (const auto& [index, named] : ids) {
      const auto rows = contents_.token_rows.find(index);
      if (rows != contents_.token_rows.end())
        VALORA_CHECK(add_rows(index, named->ids, rows->second));
      else if (!(tied_ && is_head(index) && ids.size() > 1))  // stored once, with the embedding
        return unprocessable("trainable_token_indices names rows of " + module(index).name +
                                 ", for which the file has none",
                             "trainable_token_indices");
    }
    for (const auto& [index, rows] : contents_.token_rows)
      if (!ids.contains(index) && !repeats_the_embedding(index, rows))
        return unprocessable("the file has rows of " + module(index).name +
                             ", which trainable_token_indices does not name");
    VocabularyChange& v = spec_.vocabulary;
    if (tied_ && v.embedding_rows >= 0 && v.head_rows < 0) {
      v.head_rows = v.embedding_rows;
      v.head_ids = v.embedding_ids;
    }
    return {};
  }

  // At most one of these may change a layer, except that a low-rank product may be added to a whole
  // embedding.
  Status check_combination() const {
    const VocabularyChange& v = spec_.vocabulary;
    const int head = modules_.first_of(ModuleKind::kHead);
    const bool lora_on_head = std::ranges::any_of(
        spec_.targets, [&](const LoraTarget& target) { return target.module == head; });
    const bool shifts_head = std::ranges::any_of(
        spec_.shifts, [&](const OutputValues& shift) { return shift.module == head; });
    if (v.embedding_rows >= 0 &&
        ((v.embedding >= 0 && !embedding_below_rows_) || v.embedding_lora >= 0))
      return unprocessable("the adapter changes the embedding both by rows and as a whole");
    if (v.head_rows >= 0 &&
        ((v.head >= 0 && !head_below_rows_) || lora_on_head || shifts_head || v.head_lora >= 0))
      return unprocessable("the adapter changes the output layer both by rows and as a whole");
    if (v.head >= 0 && (lora_on_head || shifts_head))
      return unprocessable(
          "the adapter has a whole output layer, and low-rank products or a bias on it");
    if (v.embedding >= 0 && !v.embedding_gain.empty())
      return unprocessable("the adapter has a whole embedding, and a magnitude (use_dora) on it",
                           "use_dora");
    return {};
  }

  // Determines the adapter's vocabulary size. A layer missing from the file is the base model's: it
  // has no embeddings or logits for additional tokens, but can be cut to fewer tokens.
  Status count_tokens() {
    VocabularyChange& v = spec_.vocabulary;
    const int64_t base = base_tokens(), embedding = tokens_of(ModuleKind::kEmbedding),
                  head = tokens_of(ModuleKind::kHead);
    if (modules_.first_of(ModuleKind::kEmbedding) < 0 || modules_.first_of(ModuleKind::kHead) < 0)
      return {};  // the table covers the file's modules only
    if (embedding == base && head == base) return {};
    const bool cut = (v.embedding < 0 && head < base) || (v.head < 0 && embedding < base);
    if (embedding != head && !cut)
      return unprocessable("the adapter's embedding is of " + std::to_string(embedding) +
                           " tokens, its output layer of " + std::to_string(head) +
                           ": a part of a resized vocabulary is missing");
    v.tokens = std::min(embedding, head);
    spec_.replaces = true;
    return {};
  }

 private:
  const Module& module(int index) const { return modules_.modules()[index]; }
  bool is_head(int index) const { return module(index).kind == ModuleKind::kHead; }

  int64_t base_tokens() const {
    const int embedding = modules_.first_of(ModuleKind::kEmbedding);
    return embedding < 0 ? 0 : module(embedding).in;
  }

  // Number of tokens in the embedding or the output layer, including rows added so far.
  int64_t tokens_of(ModuleKind kind) const {
    const VocabularyChange& v = spec_.vocabulary;
    const bool of_head = kind == ModuleKind::kHead;
    const int whole = of_head ? v.head : v.embedding;
    int64_t tokens = whole < 0 ? base_tokens() : spec_.parts[whole].rows;
    for (const int64_t id : of_head ? v.head_ids : v.embedding_ids)
      tokens = std::max(tokens, id + 1);
    return tokens;
  }

  // With tied embeddings, PEFT saves identical rows for both layers.
  bool repeats_the_embedding(int index, const TokenRows& rows) const {
    const auto embedding = contents_.token_rows.find(modules_.first_of(ModuleKind::kEmbedding));
    return tied_ && is_head(index) && embedding != contents_.token_rows.end() &&
           rows.rows->dtype == embedding->second.rows->dtype &&
           rows.rows->shape == embedding->second.rows->shape &&
           std::ranges::equal(rows.rows->bytes, embedding->second.rows->bytes);
  }

  // Rows beyond the weight's end must cover all tokens up to the last one.
  Status check_ids(const Module& m, const std::vector<int64_t>& ids) const {
    const int whole =
        m.kind == ModuleKind::kHead ? spec_.vocabulary.head : spec_.vocabulary.embedding;
    const int64_t known = whole < 0 ? base_tokens() : spec_.parts[whole].rows;
    const int64_t last = *std::ranges::max_element(ids);
    const auto further = std::ranges::count_if(ids, [&](int64_t id) { return id >= known; });
    if (last < known || (whole < 0 && further == last + 1 - known)) return {};
    return unprocessable("trainable_token_indices has the token " + std::to_string(last) +
                             ", but " + m.name +
                             (whole < 0 ? " of the base model" : " of the file") + " has " +
                             std::to_string(known) + ", and the file not all of those between",
                         "trainable_token_indices");
  }

  int add(AdapterPart part) {
    if (part.kind == PartKind::kEmbedding || part.kind == PartKind::kHead)
      spec_.bytes += part.bytes();  // the others were counted when their tensors were read
    spec_.replaces = spec_.replaces || part.kind != PartKind::kEmbeddingLora;
    spec_.parts.push_back(std::move(part));
    return static_cast<int>(spec_.parts.size()) - 1;
  }

  int add_matrix(const ChangedCopy& copy, PartKind kind) {
    const TensorView& view = *file_.find(copy.tensor);
    DigestBuilder digest;
    digest.add("part").add(static_cast<uint8_t>(kind)).add(copy.values);
    return add({kind, {copy.tensor}, view.dtype, view.shape[0], view.shape[1], digest.finish()});
  }

  bool is_saved(int index) const {
    return std::ranges::any_of(config_.modules_to_save, [&](const std::string& saved) {
      const std::vector<std::string> names = modules_.names(index);
      return std::ranges::any_of(names, [&](const std::string& name) {
        return name == saved || name.ends_with("." + saved);
      });
    });
  }

  // With tied embeddings, PEFT has one tensor for both layers, unless modules_to_save lists either
  // of them.
  Status tie_copies(const std::vector<ChangedCopy>& changed) {
    if (!tied_) return {};
    const auto weight_of = [&](ModuleKind kind) {
      const auto it = std::ranges::find_if(changed, [&](const ChangedCopy& copy) {
        return !copy.is_bias && module(copy.module).kind == kind;
      });
      return it == changed.end() ? nullptr : &*it;
    };
    const ChangedCopy* embedding = weight_of(ModuleKind::kEmbedding);
    const ChangedCopy* head = weight_of(ModuleKind::kHead);
    const int embedding_index = modules_.first_of(ModuleKind::kEmbedding),
              head_index = modules_.first_of(ModuleKind::kHead);
    const bool one =
        config_.ensure_weight_tying || (!is_saved(embedding_index) && !is_saved(head_index));
    if (!one || (!embedding && !head)) return {};
    // A weight that is in the file but unchanged is the base's, so it differs from the changed one.
    const bool other_is_bases = has_weight(embedding ? head_index : embedding_index);
    if (embedding && head ? embedding->values != head->values : other_is_bases)
      return unprocessable("the file has different weights of " + module(embedding_index).name +
                           " and " + module(head_index).name + ", which this model ties");
    if (!embedding) {
      spec_.vocabulary.embedding = add_matrix(*head, PartKind::kEmbedding);
      embedding_below_rows_ = head_below_rows_;
    } else if (!head) {
      spec_.vocabulary.head = add_matrix(*embedding, PartKind::kHead);
      head_below_rows_ = embedding_below_rows_;
    }
    return {};
  }

  // True if the file has a weight of this module.
  bool has_weight(int index) const {
    return std::ranges::any_of(contents_.base_copies, [&](const auto& copy) {
      return copy.second.role == TensorRole::kWeight && modules_.find(copy.second.module) == index;
    });
  }

  Result<int> named_module(const std::string& name) const {
    for (const ModuleKind kind : {ModuleKind::kEmbedding, ModuleKind::kHead}) {
      const int index = modules_.first_of(kind);
      if (index < 0) continue;
      if (name.empty()) return index;
      for (const std::string& known : modules_.names(index))
        if (known == name || known.ends_with("." + name)) return index;
    }
    return unprocessable("trainable_token_indices names " + shortened(name) +
                             ", which is neither the embedding nor the output layer of this model",
                         "trainable_token_indices");
  }

  Status add_rows(int index, const std::vector<int64_t>& ids, const TokenRows& rows) {
    const Module& m = module(index);
    const int64_t hidden = is_head(index) ? m.in : m.out;
    const std::vector<int64_t> expected{static_cast<int64_t>(ids.size()), hidden};
    if (rows.rows->shape != expected)
      return unprocessable("the rows of " + m.name + " have shape " + shape_text(rows.rows->shape) +
                           "; trainable_token_indices and the module require " +
                           shape_text(expected));
    VALORA_CHECK(check_ids(m, ids));
    const std::array<const TensorView*, 1> views{rows.rows};
    const int part = add({PartKind::kTokenRows,
                          {rows.tensor},
                          rows.rows->dtype,
                          expected[0],
                          hidden,
                          part_digest(PartKind::kTokenRows, views)});
    (is_head(index) ? spec_.vocabulary.head_rows : spec_.vocabulary.embedding_rows) = part;
    (is_head(index) ? spec_.vocabulary.head_ids : spec_.vocabulary.embedding_ids) = ids;
    return {};
  }

  const SafeTensors& file_;
  const AdapterContents& contents_;
  const LoraConfig& config_;
  const ModuleTable& modules_;
  AdapterSpec& spec_;
  bool tied_;
  bool embedding_below_rows_ = false, head_below_rows_ = false;
};

}  // namespace

Status resolve_vocabulary(const SafeTensors& file, const AdapterContents& contents,
                          const LoraConfig& config, const ModuleTable& modules,
                          const std::vector<ChangedCopy>& changed, const BaseWeights* base,
                          const std::vector<LoraTarget>& taken, AdapterSpec& spec) {
  VocabularyChanges changes(file, contents, config, modules, base && base->tied(), spec);
  VALORA_CHECK(changes.add_copies(changed));
  VALORA_CHECK(changes.add_low_rank(taken));
  VALORA_CHECK(changes.add_token_rows());
  VALORA_CHECK(changes.count_tokens());
  return changes.check_combination();
}

}  // namespace valora::adapters
