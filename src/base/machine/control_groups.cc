#include "base/machine/control_groups.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

namespace valora {
namespace {

// Where a hierarchy of groups can be seen. A container may see a part of it only.
struct Mount {
  std::string point;
  std::string top = "/";  // the group that the mount point shows
};

bool lists(std::string_view names, std::string_view name) {
  for (size_t begin = 0; begin <= names.size();) {
    const size_t end = std::min(names.find(',', begin), names.size());
    if (names.substr(begin, end - begin) == name) return true;
    begin = end + 1;
  }
  return false;
}

// Undoes the kernel's "\134" for characters that separate fields.
std::string unescaped(std::string_view text) {
  std::string made;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&](size_t at) { return text[i + at] - '0'; };
    const auto octal = [&](size_t at) { return digit(at) >= 0 && digit(at) < 8; };
    if (text[i] == '\\' && i + 3 < text.size() && octal(1) && octal(2) && octal(3)) {
      made += static_cast<char>(digit(1) * 64 + digit(2) * 8 + digit(3));
      i += 3;
    } else {
      made += text[i];
    }
  }
  return made;
}

// Mounts of v2's hierarchy, or of the one of v1 that has `controller`. The usual mount points are
// tried even if they are not listed.
std::vector<Mount> mounts(const std::string& root, bool v2, const std::string& controller) {
  std::vector<Mount> found;
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t split = line.find(" - ");
    if (split == line.npos) continue;
    std::istringstream before(line.substr(0, split)), after(line.substr(split + 3));
    std::string id, parent, device, top, point, type, source, options;
    if (!(before >> id >> parent >> device >> top >> point) ||
        !(after >> type >> source >> options))
      continue;
    if (v2 ? type == "cgroup2" : type == "cgroup" && lists(options, controller))
      found.push_back({unescaped(point), unescaped(top)});
  }
  if (v2) {
    found.push_back({"/sys/fs/cgroup"});
  } else {
    for (const char* name : {"cpu", "cpu,cpuacct", "memory"})
      if (lists(name, controller)) found.push_back({std::string("/sys/fs/cgroup/") + name});
  }
  return found;
}

// The process's group in v2's hierarchy, or in the one of v1 that has `controller`.
std::string own_group(const std::string& root, bool v2, const std::string& controller) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {  // number:controllers:group
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (v2 ? controllers.empty() : lists(controllers, controller)) return line.substr(second + 1);
  }
  return "/";
}

// Folders of the process's group and of all above it, as far as they can be seen, under `root`.
std::vector<std::string> group_folders(const std::string& root, bool v2,
                                       const std::string& controller) {
  const std::string group = own_group(root, v2, controller);
  std::vector<std::string> folders;
  for (const Mount& mount : mounts(root, v2, controller)) {
    std::string below = group;
    if (mount.top != "/")
      below = group == mount.top                   ? ""
              : group.starts_with(mount.top + "/") ? group.substr(mount.top.size())
                                                   : "";
    if (!below.starts_with('/') || below == "/" || below.find("/..") != below.npos) below.clear();
    for (;; below.resize(below.rfind('/'))) {
      folders.push_back(mount.point + below);
      if (below.empty()) break;
    }
  }
  std::ranges::sort(folders);
  const auto repeated = std::ranges::unique(folders);
  folders.erase(repeated.begin(), repeated.end());
  return folders;
}

// Absent for "max", -1 and files that are not there.
template <typename T>
std::optional<T> number_in(const std::string& path) {
  std::ifstream file(path);
  T number{};
  if (!(file >> number) || number < 0) return std::nullopt;
  return number;
}

// Bytes of the page cache that the kernel can take back.
int64_t cached_bytes(const std::string& path, bool v2) {
  std::ifstream file(path);
  std::string key;
  int64_t bytes = 0, sum = 0;
  const std::string_view prefix = v2 ? "" : "total_";
  while (file >> key >> bytes)
    if (const std::string_view name = key; name.starts_with(prefix))
      if (const auto rest = name.substr(prefix.size());
          rest == "inactive_file" || rest == "active_file")
        sum += bytes;
  return sum;
}

}  // namespace

std::optional<CpuQuota> cpu_quota(const std::string& root) {
  std::optional<CpuQuota> lowest;
  const auto consider = [&](double quota, double period, const std::string& file) {
    if (quota <= 0 || period <= 0) return;
    if (!lowest || quota / period < lowest->cpus) lowest = {quota / period, file};
  };
  for (const std::string& folder : group_folders(root, true, "")) {
    std::ifstream file(root + folder + "/cpu.max");  // "QUOTA PERIOD" or "max PERIOD"
    double quota = 0, period = 0;
    if (file >> quota >> period) consider(quota, period, folder + "/cpu.max");
  }
  for (const std::string& folder : group_folders(root, false, "cpu")) {
    const std::string file = folder + "/cpu.cfs_quota_us";
    consider(number_in<double>(root + file).value_or(0),
             number_in<double>(root + folder + "/cpu.cfs_period_us").value_or(0), file);
  }
  return lowest;
}

std::optional<MemoryLimit> memory_limit(const std::string& root) {
  constexpr int64_t kNoLimit = int64_t{1} << 60;  // v1 writes a huge number
  std::optional<MemoryLimit> least;
  for (const bool v2 : {true, false}) {
    for (const std::string& folder : group_folders(root, v2, "memory")) {
      const std::string own = root + folder;
      const auto used =
          number_in<int64_t>(own + (v2 ? "/memory.current" : "/memory.usage_in_bytes"));
      const int64_t held =
          std::max<int64_t>(0, used.value_or(0) - cached_bytes(own + "/memory.stat", v2));
      // Above memory.high the kernel slows a group down until it has given memory back.
      for (const char* name : {"memory.max", "memory.high", "memory.limit_in_bytes"}) {
        const auto bytes = number_in<int64_t>(own + "/" + name);
        if (!bytes || *bytes >= kNoLimit) continue;
        const int64_t left = std::max<int64_t>(0, *bytes - held);
        if (!least || left < least->left) least = {*bytes, left, folder + "/" + name};
      }
    }
  }
  return least;
}

}  // namespace valora
