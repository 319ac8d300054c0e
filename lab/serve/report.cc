#include "lab/serve/report.h"

#include <fmt/format.h>

#include <algorithm>

namespace valora::bench {
namespace {

std::string range_text(const Range& range) {
  return range.min == range.max ? std::to_string(range.min)
                                : fmt::format("{}-{}", range.min, range.max);
}

std::string load_text(const ServeLoad& load, size_t models) {
  std::string text =
      fmt::format("{} requests to {} model{} ({}), {} tokens in", load.requests, models,
                  models == 1 ? "" : "s", load.distribution, range_text(load.input_tokens));
  if (load.images.count > 0)
    text += fmt::format(" and {}{} image{} of {}x{}", load.images.repeat ? "the same " : "",
                        load.images.count, load.images.count == 1 ? "" : "s", load.images.width,
                        load.images.height);
  text += fmt::format(", {} out; ", range_text(load.output_tokens));
  if (load.request_rate > 0)
    text += fmt::format("open loop, {:g} per second", load.request_rate);
  else
    text += "closed loop";
  if (load.concurrency > 0) text += fmt::format(", {} at once", load.concurrency);
  return text;
}

std::string row(const char* name, const Distribution& d) {
  if (d.count == 0)
    return fmt::format("  {:<10} {:>10} {:>10} {:>10} {:>10}\n", name, "-", "-", "-", "-");
  return fmt::format("  {:<10} {:>10.1f} {:>10.1f} {:>10.1f} {:>10.1f}\n", name, d.mean * 1e3,
                     d.p50 * 1e3, d.p90 * 1e3, d.p99 * 1e3);
}

std::string milliseconds(const Distribution& d, double Distribution::* value) {
  return d.count == 0 ? "-" : fmt::format("{:.1f}", d.*value * 1e3);
}

std::string model_table(const Summary& summary) {
  size_t width = 5;
  for (const auto& [name, group] : summary.models) width = std::max(width, name.size());
  std::string text =
      fmt::format("  {:<{}} {:>8} {:>7} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "model", width,
                  "requests", "failed", "tokens out", "TTFT p50", "TPOT p50", "E2E p50", "E2E p90");
  for (const auto& [name, g] : summary.models)
    text += fmt::format(
        "  {:<{}} {:>8} {:>7} {:>10} {:>10} {:>10} {:>10} {:>10}\n", name, width, g.requests,
        g.failed, g.completion_tokens, milliseconds(g.ttft, &Distribution::p50),
        milliseconds(g.tpot, &Distribution::p50), milliseconds(g.e2e, &Distribution::p50),
        milliseconds(g.e2e, &Distribution::p90));
  return text;
}

Json distribution_json(const Distribution& d) {
  if (d.count == 0) return nullptr;
  return {{"count", d.count}, {"mean", d.mean}, {"p50", d.p50}, {"p90", d.p90}, {"p99", d.p99}};
}

Json group_json(const Group& g) {
  return {{"requests", g.requests},
          {"failed", g.failed},
          {"short_answers", g.short_answers},
          {"errors", g.errors},
          {"prompt_tokens", g.prompt_tokens},
          {"cached_tokens", g.cached_tokens},
          {"completion_tokens", g.completion_tokens},
          {"ttft_seconds", distribution_json(g.ttft)},
          {"tpot_seconds", distribution_json(g.tpot)},
          {"itl_seconds", distribution_json(g.itl)},
          {"e2e_seconds", distribution_json(g.e2e)}};
}

Json load_json(const ServeLoad& load) {
  return {{"url", load.url},
          {"num_prompts", load.requests},
          {"concurrency", load.concurrency},
          {"request_rate", load.request_rate},
          {"adapter_distribution", load.distribution},
          {"input_tokens", {load.input_tokens.min, load.input_tokens.max}},
          {"output_tokens", {load.output_tokens.min, load.output_tokens.max}},
          {"images", load.images.count},
          {"image_size", {load.images.width, load.images.height}},
          {"image_format", load.images.format == ImageFormat::kJpeg ? "jpeg" : "png"},
          {"repeat_images", load.images.repeat},
          {"warmup", load.warmup},
          {"stream", load.stream},
          {"seed", load.seed}};
}

}  // namespace

std::string report_text(const ServeLoad& load, const Summary& summary) {
  const Group& all = summary.all;
  std::string text = load_text(load, summary.models.size()) + "\n\n";
  text += fmt::format("  answered   {} of {} in {:.2f} s, {:.2f} per second\n",
                      all.requests - all.failed, all.requests, summary.seconds,
                      summary.requests_per_second);
  for (const auto& [error, count] : all.errors)
    text += fmt::format("  failed     {} x {}\n", count, error);
  if (all.short_answers > 0)
    text +=
        fmt::format("  short      {} answers ended before their last token\n", all.short_answers);
  text += fmt::format("  tokens     {} in ({} from the prefix cache), {} out\n", all.prompt_tokens,
                      all.cached_tokens, all.completion_tokens);
  text += fmt::format("  throughput {:.1f} output tokens/s, {:.1f} tokens/s in all\n\n",
                      summary.output_tokens_per_second, summary.total_tokens_per_second);
  text += fmt::format("  {:<10} {:>10} {:>10} {:>10} {:>10}\n", "ms", "mean", "p50", "p90", "p99");
  text += row("TTFT", all.ttft) + row("TPOT", all.tpot) + row("ITL", all.itl) + row("E2E", all.e2e);
  return text + "\n" + model_table(summary);
}

Json report_json(const ServeLoad& load, const Summary& summary) {
  Json json{{"load", load_json(load)},
            {"seconds", summary.seconds},
            {"requests_per_second", summary.requests_per_second},
            {"output_tokens_per_second", summary.output_tokens_per_second},
            {"total_tokens_per_second", summary.total_tokens_per_second},
            {"all", group_json(summary.all)},
            {"models", Json::object()}};
  for (const auto& [name, group] : summary.models) json["models"][name] = group_json(group);
  return json;
}

}  // namespace valora::bench
