#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text/human_bytes.h"
#include "cli/inspect_report.h"
#include "cli/progress/format.h"
#include "memory/block_arena.h"

namespace valora::cli {
namespace {

class Lines {
 public:
  explicit Lines(std::string title) : text_(std::move(title) + "\n") {}
  void add(const char* key, const std::string& value) {
    text_ += fmt::format("  {:<14} {}\n", key, value);
  }
  void add(const char* key, const std::vector<std::string>& values) {
    for (const std::string& value : values) add(key, value);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

std::string plural(size_t count, const std::string& noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

// The last part of a name: "q_proj" in "model.layers.3.self_attn.q_proj".
std::string kind_of(const std::string& module) { return module.substr(module.rfind('.') + 1); }

std::string ranks_text(const adapters::AdapterSpec& spec) {
  std::set<int> ranks;
  std::set<std::string> scales;
  for (const adapters::LoraTarget& target : spec.targets) {
    ranks.insert(target.rank);
    scales.insert(fmt::format("{:.4g}", target.scale));
  }
  return fmt::format("{}, scale {}", fmt::join(ranks, ", "), fmt::join(scales, ", "));
}

// Formats "14 linears: q_proj × 7, v_proj × 7".
std::string targets_text(const AdapterReport& report) {
  std::map<std::string, int> kinds;
  for (const adapters::LoraTarget& target : report.spec->targets)
    ++kinds[kind_of(report.modules.modules()[target.module].name)];
  std::vector<std::string> parts;
  for (const auto& [kind, count] : kinds) parts.push_back(fmt::format("{} × {}", kind, count));
  return plural(report.spec->targets.size(), "linear") + ": " +
         fmt::format("{}", fmt::join(parts, ", "));
}

std::string labels_text(const std::vector<std::string>& labels) {
  constexpr size_t kShown = 12;
  const std::vector<std::string> first(
      labels.begin(), labels.begin() + static_cast<long>(std::min(kShown, labels.size())));
  return fmt::format("{}: {}{}", plural(labels.size(), "label"), fmt::join(first, ", "),
                     labels.size() > kShown ? ", …" : "");
}

void add_spec(const models::ModelSpec& spec, int64_t heads, Lines& lines) {
  lines.add("decoder", fmt::format("{}, hidden {}, {} ({} for keys and values) of {}",
                                   plural(spec.layers, "layer"), spec.hidden, plural(heads, "head"),
                                   spec.kv_heads, spec.head_dim));
  lines.add("vocabulary", fmt::format("{} tokens", spec.vocab));
  lines.add("context", fmt::format("{} tokens", spec.max_positions));
  lines.add("takes", std::string("text") + (spec.image_token ? ", images" : "") +
                         (spec.video_token ? ", videos" : ""));
}

void add_memory(const ServedWeights& served, int64_t context, Lines& lines) {
  lines.add(
      "memory",
      fmt::format("weights {} in {}; KV cache in {}: {} per token, {} per sequence of {} tokens{}",
                  human_bytes(served.bytes), served.dtype, served.kv_dtype,
                  human_bytes(served.kv_bytes_per_token),
                  human_bytes(served.kv_bytes_per_token * context), context,
                  served.state_bytes == 0 ? std::string()
                                          : ", and a state of " + human_bytes(served.state_bytes)));
  lines.add(
      "here",
      fmt::format(
          "with the default options a pool of {}, without adapters for {} tokens; sequences up to "
          "{}",
          human_bytes(static_cast<size_t>(served.plan.block_bytes) * served.plan.blocks),
          int64_t{served.plan.blocks} * memory::kBlockTokens, served.plan.max_model_len));
}

void add_proof(const AdapterReport& report, const AdapterProof& proof, Lines& lines) {
  for (const PartNorms& part : proof.norms)
    lines.add("change", fmt::format("{}: {:.2g} % of the norm of the weights that it adapts",
                                    part.part, 100 * part.change / part.weights));
  for (const ProvedPrompt& prompt : proof.prompts)
    lines.add(prompt.name.c_str(),
              fmt::format("log probabilities of its {} tokens differ by {:.3g} on average, {:.3g} "
                          "at most; answers {} without the adapter, {} with it",
                          prompt.with.size(), prompt.mean_difference(), prompt.largest_difference(),
                          Json(prompt.answer).dump(), Json(prompt.adapted_answer).dump()));
  const bool heads = !report.spec->heads.empty();
  lines.add("proof", proof.changes_answers() ? "it changes answers"
                     : heads ? "its heads answer; it changes no answer of the language model"
                             : "it changes nothing: both prompts get the base model's answers");
}

const char* verdict(const std::vector<std::string>& problems) {
  return problems.empty() ? "can be served" : "cannot be served";
}

}  // namespace

std::string inspect_text(const ModelReport& report) {
  Lines lines(fmt::format("{}: a model, {} on CPUs", report.path, verdict(report.problems)));
  lines.add("because", report.problems);
  if (!report.architecture.empty())
    lines.add("architecture",
              report.architecture + (report.known_architecture ? "" : " (unknown)"));
  if (report.stored)
    lines.add("weights",
              fmt::format("{} parameters, {} on disk in {}", human_count(report.stored->parameters),
                          human_bytes(report.stored->bytes), report.stored->dtype));
  if (report.served && report.served->quantised)
    lines.add("quantised", report.served->quantised->text(report.served->dtype));
  if (report.spec) add_spec(*report.spec, report.attention_heads, lines);
  if (report.spec)
    lines.add("tokenizer", report.tokenizer_size ? fmt::format("{} tokens", *report.tokenizer_size)
                                                 : "cannot be used");
  if (report.chat_example) lines.add("chat format", Json(*report.chat_example).dump());
  if (report.served) add_memory(*report.served, report.spec->max_positions, lines);
  lines.add("warning", report.warnings);
  return lines.take();
}

std::string inspect_text(const AdapterReport& report, const AdapterProof* proof) {
  const std::string on = report.model_path.empty() ? "" : " on " + report.model_path;
  Lines lines(fmt::format("{}: an adapter, {}{}", report.path, verdict(report.problems), on));
  lines.add("because", report.problems);
  if (!report.base_model.empty()) lines.add("made for", report.base_model);
  if (!report.spec) return lines.take();
  const adapters::AdapterSpec& spec = *report.spec;
  if (!spec.task.empty()) lines.add("task", spec.task);
  if (!spec.description.empty()) lines.add("description", spec.description);
  if (!spec.question.empty()) lines.add("question", spec.question);
  if (!spec.targets.empty()) {
    lines.add("rank", ranks_text(spec));
    lines.add("targets", targets_text(report));
    lines.add("adapts", text_of(report.changes));
  }
  if (!report.idle_targets.empty())
    lines.add("idle", fmt::format("target_modules without weights in the file: {}",
                                  fmt::join(report.idle_targets, ", ")));
  for (const adapters::AdapterPart& part : spec.parts)
    lines.add("part", fmt::format("{}, {} × {}, {}", adapters::part_kind_name(part.kind), part.rows,
                                  part.columns, human_bytes(part.bytes())));
  if (!spec.shifts.empty()) lines.add("biases", "of " + plural(spec.shifts.size(), "linear"));
  if (!spec.gains.empty())
    lines.add("magnitudes", "of " + plural(spec.gains.size(), "linear") + " (DoRA)");
  if (spec.replaces)
    lines.add("requests", "use it alone and at scale 1: it replaces values of the model");
  for (const adapters::TaskHead& head : spec.heads)
    lines.add("head", head.name + ", " + labels_text(head.labels.list()));
  lines.add("size", human_bytes(spec.bytes));
  lines.add("warning", spec.warnings);
  if (proof) add_proof(report, *proof, lines);
  if (report.model_path.empty())
    lines.add("note", "checked without a model; --model DIR tells whether its targets are there");
  return lines.take();
}

}  // namespace valora::cli
