// Computes metrics for the parity tests. One JSON command per line on stdin: {"metric": …,
// "samples":
// [{"references": […], "answer": …}]}. One answer per line on stdout: {"value", "of_samples"}.
#include <iostream>
#include <map>

#include "base/json/json.h"
#include "generator/data/metrics/metrics.h"

namespace valora::generator {
namespace {

Result<Score> run(const Json& command) {
  const std::map<std::string, Metric> metrics{
      {"vqa", Metric::kVqa}, {"cider", Metric::kCider}, {"rouge_l", Metric::kRougeL}};
  Task task;
  task.metric = metrics.at(command.at("metric"));
  std::vector<Sample> samples;
  std::vector<Prediction> predictions;
  for (const Json& sample : command.at("samples")) {
    samples.push_back({.origin = "sample " + std::to_string(samples.size()),
                       .references = sample.at("references")});
    predictions.push_back({.text = sample.at("answer")});
  }
  return score(task, samples, predictions);
}

}  // namespace
}  // namespace valora::generator

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    const auto result = valora::generator::run(valora::Json::parse(line));
    const valora::Json answer =
        result.ok() ? valora::Json{{"value", result->value}, {"of_samples", result->of_samples}}
                    : valora::Json{{"error", result.error().message}};
    std::cout << answer.dump() << std::endl;
  }
}
