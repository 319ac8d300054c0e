// `valora bench serve`: load test of a running server.
#include <fmt/format.h>

#include <iostream>

#include "cli/progress/format.h"
#include "cli/progress/progress_bar.h"
#include "lab/cli/command.h"
#include "lab/serve/report.h"
#include "lab/serve/serve_bench.h"

namespace valora::cli {
namespace {

struct BenchServeFlags {
  bench::ServeLoad load;
  std::string input_tokens = "128", output_tokens = "64", image_size = "224x224",
              image_format = "jpeg";
  std::optional<int> concurrency;
  bool json = false;
};

// Parses two integers with `separator` in between. If `may_be_one`, a single integer stands for
// both.
std::optional<std::pair<int, int>> parse_pair(const std::string& text, char separator,
                                              bool may_be_one) {
  const auto number = [](const std::string& part) {
    const bool digits =
        !part.empty() && part.size() < 9 && part.find_first_not_of("0123456789") == part.npos;
    return digits ? std::optional(std::stoi(part)) : std::nullopt;
  };
  const size_t at = text.find(separator);
  if (at == text.npos && !may_be_one) return std::nullopt;
  const auto first = number(text.substr(0, at));
  const auto second = at == text.npos ? first : number(text.substr(at + 1));
  if (!first || !second) return std::nullopt;
  return std::pair(*first, *second);
}

Status apply(BenchServeFlags& flags) {
  const auto input = parse_pair(flags.input_tokens, ':', true),
             output = parse_pair(flags.output_tokens, ':', true);
  if (!input)
    return invalid("--input-tokens takes N or MIN:MAX, not \"" + flags.input_tokens + "\"");
  if (!output)
    return invalid("--output-tokens takes N or MIN:MAX, not \"" + flags.output_tokens + "\"");
  const auto size = parse_pair(flags.image_size, 'x', false);
  if (!size) return invalid("--image-size takes WIDTHxHEIGHT, not \"" + flags.image_size + "\"");
  if (flags.image_format != "jpeg" && flags.image_format != "png")
    return invalid("--image-format is jpeg or png");
  bench::ServeLoad& load = flags.load;
  load.input_tokens = {input->first, input->second};
  load.output_tokens = {output->first, output->second};
  load.images.width = size->first;
  load.images.height = size->second;
  load.images.format =
      flags.image_format == "png" ? bench::ImageFormat::kPng : bench::ImageFormat::kJpeg;
  load.concurrency = flags.concurrency.value_or(load.request_rate > 0 ? 0 : load.concurrency);
  return {};
}

int run_bench_serve(BenchServeFlags& flags) {
  if (const Status s = apply(flags); !s.ok()) return fail(s.error());
  Result<bench::ServeRun> run = bench::ServeRun{};
  {
    ProgressBar bar;
    run = bench::run_serve_bench(flags.load, [&](const bench::Progress& p) {
      bar.show(p.ended, p.total,
               fmt::format("{:.0f} s{}", p.seconds,
                           p.failed > 0 ? fmt::format(", {} failed", p.failed) : ""));
    });
  }
  if (!run.ok()) return fail(run.error());
  const bench::Summary summary = bench::summarize(run->records);
  if (flags.json)
    print_json(bench::report_json(flags.load, summary));
  else
    std::cout << bench::report_text(flags.load, summary);
  if (summary.all.failed == summary.all.requests)
    return fail({ErrorCode::kUnavailable, "no request was answered", {}});
  return 0;
}

}  // namespace

void add_bench_serve(Command bench, std::function<int()>& run) {
  auto flags = std::make_shared<BenchServeFlags>();
  bench::ServeLoad& load = flags->load;
  Command c = bench.add_subcommand("serve", "Measure throughput and latency of a running server");
  c.add_option("--url", load.url, "URL of the server, without /v1").capture_default_str();
  c.add_option("--api-key", load.api_key, "API key to send").envname("VALORA_API_KEY");
  c.add_option(
       "--models", load.models,
       "Models and adapters to request, as A,B,C (default: every adapter that the server lists)")
      .delimiter(',');
  c.add_option("--adapter-distribution", load.distribution,
               "Distribution of requests over models: uniform, zipf:S or distinct (in turn)")
      .capture_default_str();
  c.add_option("--num-prompts", load.requests, "Number of requests").capture_default_str();
  c.add_option("--concurrency", flags->concurrency,
               "Highest number of concurrent requests (default: 8; unlimited with --request-rate)");
  c.add_option("--request-rate", load.request_rate,
               "Requests per second, sent as a Poisson process");
  c.add_option("--input-tokens", flags->input_tokens,
               "Tokens per prompt, N or MIN:MAX; approximate with --images")
      .capture_default_str();
  c.add_option("--output-tokens", flags->output_tokens, "Tokens per answer, N or MIN:MAX")
      .capture_default_str();
  c.add_option("--images", load.images.count, "Random images per request").capture_default_str();
  c.add_option("--image-size", flags->image_size, "Image size in pixels, WIDTHxHEIGHT")
      .capture_default_str();
  c.add_option("--image-format", flags->image_format, "Image format: jpeg or png")
      .capture_default_str();
  c.add_flag("--repeat-images", load.images.repeat, "Send the same images with every request");
  c.add_flag("--stream,!--no-stream", load.stream,
             "Stream the answers; TTFT, TPOT and ITL are measured only on streams");
  c.add_option("--warmup", load.warmup, "Uncounted requests before the run").capture_default_str();
  c.add_option("--timeout", load.timeout_seconds, "Seconds before a request fails")
      .capture_default_str();
  c.add_option("--seed", load.seed,
               "Random seed of prompts, images, models and arrivals; use a new seed per run, or "
               "prompts hit the server's prefix cache")
      .capture_default_str();
  c.add_flag("--json", flags->json, "Print one JSON object");
  c.callback([flags, &run] { run = [flags] { return run_bench_serve(*flags); }; });
}

}  // namespace valora::cli
