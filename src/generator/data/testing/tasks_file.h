// Test helper: a folder with a tasks file and the data it refers to.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/testing/temp_dir.h"
#include "generator/data/tasks_file.h"

namespace valora::generator {

class TasksFile : public ::testing::Test {
 protected:
  TasksFile() {
    for (const char* folder : {"classes", "pictures"})
      std::filesystem::create_directory(dir_.file(folder));
    for (const char* file : {"a.jsonl", "b.jsonl", "boxes.json", "teacher.pt"})
      dir_.write(file, "");
  }

  Result<std::vector<Task>> read(const std::string& text) {
    return read_tasks(dir_.write("tasks.yaml", text));
  }
  // A classification task with additional lines, starting at line 6.
  Result<std::vector<Task>> with(const std::string& lines,
                                 const std::string& type = "classification") {
    return read("tasks:\n  - name: one\n    type: " + type +
                "\n    train: a.jsonl\n    validation: b.jsonl\n" + lines);
  }
  // A task whose training data is given by `lines`, starting at line 4.
  Result<std::vector<Task>> taught(const std::string& type, const std::string& lines) {
    return read("tasks:\n  - name: one\n    type: " + type + "\n" + lines);
  }
  std::string at(int line) const {
    return dir_.file("tasks.yaml") + ":" + std::to_string(line) + ": ";
  }
  std::string error(const Result<std::vector<Task>>& tasks) {
    return tasks.ok() ? "no error" : tasks.error().message;
  }

  valora::testing::TempDir dir_;
};

}  // namespace valora::generator
