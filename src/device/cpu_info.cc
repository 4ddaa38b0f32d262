// What /proc and /sys tell about the processor and the limits of this process.
#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <thread>
#include <vector>

#include "base/fs.h"
#include "device/cpu.h"

namespace oasr {
namespace {

// The text of a small file; empty when it is not there or not readable (all of them are optional).
// Not read_text_file: files of /proc have no size.
std::string slurp(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return file ? text.str() : std::string();
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

template <class T>
std::optional<T> number(std::string_view text) {
  text = trimmed(text);
  T value{};
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || rest == text.data()) return std::nullopt;
  return value;
}

// The value after "key" and a colon, in a file of "key : value" lines.
std::string field(const std::string& text, std::string_view key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    if (trimmed(std::string_view(line).substr(0, colon)) != key) continue;
    return std::string(trimmed(std::string_view(line).substr(colon + 1)));
  }
  return {};
}

// The number of processors in a list such as "0-3,8,10-11"; 0 if it is not one.
int cores_in_list(const std::string& list) {
  std::istringstream parts(list);
  std::int64_t cores = 0;
  for (std::string part; std::getline(parts, part, ',');) {
    const auto first = number<int>(part);
    if (!first) return 0;
    const auto dash = part.find('-');
    const auto last = dash == std::string::npos ? first : number<int>(part.substr(dash + 1));
    if (!last || *last < *first) return 0;
    cores += std::int64_t{*last} - *first + 1;
  }
  return static_cast<int>(std::min<std::int64_t>(cores, std::numeric_limits<int>::max()));
}

// The folders that limit this process in one controller's tree, from its own group to the root.
// A container may see only its part of the tree: groups that are not there are skipped.
std::vector<fs::path> group_folders(const fs::path& mount, const std::string& group) {
  std::vector<fs::path> folders;
  fs::path path = fs::path(group).lexically_normal().relative_path();
  while (!path.empty() && path != ".") {
    folders.push_back(mount / path);
    path = path.parent_path();
  }
  folders.push_back(mount);
  return folders;
}

// This process's group for a v1 controller ("cpu"), or for v2 (""), from /proc/self/cgroup.
std::optional<std::string> group_of(const std::string& self, std::string_view controller) {
  std::istringstream lines(self);
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string names = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool wanted = controller.empty()
                            ? names == ",,"
                            : names.find("," + std::string(controller) + ",") != std::string::npos;
    if (wanted) return line.substr(second + 1);
  }
  return std::nullopt;
}

// cpu.max holds "quota period" or "max period", in microseconds.
std::optional<double> cores_of_v2(const fs::path& folder) {
  std::istringstream text(slurp(folder / "cpu.max"));
  std::string quota, period;
  text >> quota >> period;
  const auto q = number<double>(quota), p = number<double>(period);
  if (!q || !p || *q <= 0 || *p <= 0) return std::nullopt;
  return *q / *p;
}

std::optional<double> cores_of_v1(const fs::path& folder) {
  const auto q = number<double>(slurp(folder / "cpu.cfs_quota_us"));
  const auto p = number<double>(slurp(folder / "cpu.cfs_period_us"));
  if (!q || !p || *q <= 0 || *p <= 0) return std::nullopt;  // -1: no limit
  return *q / *p;
}

std::optional<std::size_t> bytes_of_v2(const fs::path& folder) {
  return number<std::size_t>(slurp(folder / "memory.max"));  // "max": no limit
}

std::optional<std::size_t> bytes_of_v1(const fs::path& folder) {
  return number<std::size_t>(slurp(folder / "memory.limit_in_bytes"));
}

// The tightest limit that `read` finds on the way to the root, in any of the mounts.
template <class T>
std::optional<T> tightest(const std::vector<fs::path>& mounts, const std::optional<std::string>& group,
                          std::optional<T> (*read)(const fs::path&)) {
  std::optional<T> least;
  for (const fs::path& mount : mounts) {
    for (const fs::path& folder : group_folders(mount, group.value_or("/"))) {
      const auto limit = read(folder);
      if (limit && (!least || *limit < *least)) least = limit;
    }
  }
  return least;
}

std::size_t cache_bytes(const std::string& text) {
  const auto value = number<std::size_t>(text).value_or(0);
  if (text.find('K') != std::string::npos) return value << 10;
  if (text.find('M') != std::string::npos) return value << 20;
  return value;
}

void read_caches(const fs::path& folder, CpuInfo& info) {
  for (int index = 0; index < 8; ++index) {
    const fs::path cache = folder / ("index" + std::to_string(index));
    const auto level = number<int>(slurp(cache / "level"));
    if (!level || trimmed(slurp(cache / "type")) == "Instruction") continue;
    const std::size_t bytes = cache_bytes(slurp(cache / "size"));
    if (*level == 1) info.l1d_bytes = bytes;
    if (*level == 2) info.l2_bytes = bytes;
    if (*level == 3) info.l3_bytes = bytes;
  }
}

// The flags that choose a kernel lane now or in a later version, in the processor's own spelling.
std::string relevant_flags(const std::string& all) {
  constexpr std::string_view kRelevant[] = {
      "sse4_2",     "avx",         "f16c",        "fma",      "avx2",     "avx_vnni", "avx512f",
      "avx512dq",   "avx512bw",    "avx512vl",    "avx512_vnni", "avx512_bf16", "avx512_fp16",
      "amx_tile",   "amx_int8",    "amx_bf16",    "asimd",    "asimddp",  "sve"};
  std::string kept;
  const std::string padded = " " + all + " ";
  for (const std::string_view flag : kRelevant) {
    if (padded.find(" " + std::string(flag) + " ") == std::string::npos) continue;
    kept += (kept.empty() ? "" : " ") + std::string(flag);
  }
  return kept;
}

}  // namespace

CpuInfo cpu_info(const std::string& root) {
  const fs::path base(root);
  const fs::path groups = base / "sys/fs/cgroup";
  CpuInfo info;

  const std::string cpuinfo = slurp(base / "proc/cpuinfo");
  info.model = field(cpuinfo, "model name");
  info.features = relevant_flags(field(cpuinfo, "flags"));
  info.online_cores = cores_in_list(field(slurp(base / "proc/self/status"), "Cpus_allowed_list"));
  if (info.online_cores <= 0) {
    info.online_cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  }
  read_caches(base / "sys/devices/system/cpu/cpu0/cache", info);

  const std::string self = slurp(base / "proc/self/cgroup");
  const auto v2 = group_of(self, "");
  const std::vector<fs::path> unified = {groups, groups / "unified"};
  const auto quota2 = tightest(unified, v2, cores_of_v2);
  const auto quota1 = tightest({groups / "cpu", groups / "cpu,cpuacct"}, group_of(self, "cpu"), cores_of_v1);
  if (quota1 || quota2) info.cgroup_quota = std::min(quota1.value_or(1e9), quota2.value_or(1e9));

  info.memory_bytes = number<std::size_t>(field(slurp(base / "proc/meminfo"), "MemTotal")).value_or(0) << 10;
  for (const auto limit : {tightest(unified, v2, bytes_of_v2),
                           tightest({groups / "memory"}, group_of(self, "memory"), bytes_of_v1)}) {
    if (limit && (info.memory_bytes == 0 || *limit < info.memory_bytes)) info.memory_bytes = *limit;
  }
  return info;
}

}  // namespace oasr
