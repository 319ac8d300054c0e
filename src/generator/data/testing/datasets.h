// Test helper: a folder with data files and media, and functions that read them.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/testing/temp_dir.h"
#include "generator/data/datasets.h"
#include "generator/data/metrics/metrics.h"
#include "media/testing/pictures.h"

namespace valora::generator {

class Datasets : public ::testing::Test {
 protected:
  Datasets() {
    picture("a.png");
    picture("b.png");
    dir_.write("clip.mp4", "not looked into");
    task_.name = "one";
  }

  void picture(const std::string& name) {
    const auto bytes = media::testing::encode_png(media::testing::make_picture(40, 20));
    dir_.write(name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  void folder(const std::string& name) { std::filesystem::create_directories(dir_.file(name)); }

  Result<std::vector<Sample>> read(TaskType type, DataSource::Format format,
                                   const std::string& path) {
    task_.type = type;
    task_.metric = metrics_of(type).front();
    source_.format = format;
    source_.path = path;
    return read_samples(source_, task_);
  }
  Result<std::vector<Sample>> jsonl(TaskType type, const std::string& text) {
    return read(type, DataSource::Format::kJsonl, dir_.write("data.jsonl", text));
  }
  Result<std::vector<Sample>> coco(TaskType type, const std::string& text) {
    return read(type, DataSource::Format::kCoco, dir_.write("data.json", text));
  }
  Result<std::vector<Sample>> classes(const std::string& path,
                                      TaskType type = TaskType::kClassification) {
    return read(type, DataSource::Format::kFolder, dir_.file(path));
  }
  std::string at(int line) const {
    return dir_.file("data.jsonl") + ":" + std::to_string(line) + ": ";
  }
  static std::string error(const Result<std::vector<Sample>>& samples) {
    return samples.ok() ? "no error" : samples.error().message;
  }
  // The error for this line when it follows a valid one.
  std::string fault_of(TaskType type, const std::string& line) {
    static const std::map<TaskType, std::string> good{
        {TaskType::kClassification, R"({"image": "a.png", "label": "cat"})"},
        {TaskType::kQuestionAnswering, R"({"image": "a.png", "question": "q", "answer": "a"})"},
        {TaskType::kCaptioning, R"({"image": "a.png", "answer": "a"})"},
        {TaskType::kDetection, R"({"image": "a.png", "label": "cat", "boxes": [[0, 0, 1, 1]]})"},
        {TaskType::kGrounding, R"({"image": "a.png", "boxes": [[0, 0, 1, 1]]})"},
        {TaskType::kVideo, R"({"video": "clip.mp4", "label": "cat"})"}};
    const std::string message = error(jsonl(type, good.at(type) + "\n" + line + "\n"));
    EXPECT_THAT(message, ::testing::StartsWith(at(2))) << line;
    return message.substr(std::min(message.size(), at(2).size()));
  }

  valora::testing::TempDir dir_;
  Task task_;
  DataSource source_;
};

}  // namespace valora::generator
