#include <gtest/gtest.h>

#include <cstdlib>

#include "base/fs.h"
#include "device/cpu.h"
#include "testing/paths.h"

namespace oasr {
namespace {

// A folder that stands for "/" with the files that the test writes.
class FakeRoot {
 public:
  void write(const std::string& path, const std::string& text) const {
    const fs::path file = folder_.path() / path;
    fs::create_directories(file.parent_path());
    write_text_file(file, text).value();
  }
  CpuInfo info() const { return cpu_info(folder_.path().string()); }

 private:
  testing::TemporaryFolder folder_;
};

class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Environment() { unsetenv(name_); }

 private:
  const char* name_;
};

TEST(CpuInfo, ReadsAffinityCachesFlagsAndMemory) {
  const FakeRoot root;
  root.write("proc/cpuinfo", "processor\t: 0\nmodel name\t: A Chip @ 3\nflags\t\t: fpu avx fma avx2 xyz\n");
  root.write("proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-3,8,10-11\n");
  root.write("proc/meminfo", "MemTotal:       1000 kB\n");
  root.write("sys/devices/system/cpu/cpu0/cache/index0/level", "1\n");
  root.write("sys/devices/system/cpu/cpu0/cache/index0/type", "Data\n");
  root.write("sys/devices/system/cpu/cpu0/cache/index0/size", "48K\n");
  root.write("sys/devices/system/cpu/cpu0/cache/index1/level", "1\n");
  root.write("sys/devices/system/cpu/cpu0/cache/index1/type", "Instruction\n");
  root.write("sys/devices/system/cpu/cpu0/cache/index1/size", "32K\n");
  root.write("sys/devices/system/cpu/cpu0/cache/index2/level", "2\n");
  root.write("sys/devices/system/cpu/cpu0/cache/index2/type", "Unified\n");
  root.write("sys/devices/system/cpu/cpu0/cache/index2/size", "2M\n");
  const CpuInfo info = root.info();
  EXPECT_EQ(info.model, "A Chip @ 3");
  EXPECT_EQ(info.features, "avx fma avx2");
  EXPECT_EQ(info.online_cores, 7);
  EXPECT_EQ(info.l1d_bytes, 48u << 10);
  EXPECT_EQ(info.l2_bytes, 2u << 20);
  EXPECT_EQ(info.memory_bytes, 1000u << 10);
  EXPECT_EQ(info.cgroup_quota, 0);
}

TEST(CpuInfo, TakesTheTightestV2QuotaOnTheWayToTheRoot) {
  const FakeRoot root;
  root.write("proc/self/cgroup", "0::/a.slice/b.scope\n");
  root.write("sys/fs/cgroup/a.slice/cpu.max", "150000 100000\n");
  root.write("sys/fs/cgroup/a.slice/b.scope/cpu.max", "max 100000\n");
  root.write("sys/fs/cgroup/a.slice/b.scope/memory.max", "4096\n");
  EXPECT_DOUBLE_EQ(root.info().cgroup_quota, 1.5);
  EXPECT_EQ(root.info().memory_bytes, 4096u);
}

TEST(CpuInfo, FindsTheQuotaOfAContainerThatSeesOnlyItsOwnTree) {
  const FakeRoot root;
  root.write("proc/self/cgroup", "0::/../../docker/0123\n");
  root.write("sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_DOUBLE_EQ(root.info().cgroup_quota, 0.5);
}

TEST(CpuInfo, ReadsV1QuotasOfEitherMountName) {
  const FakeRoot root;
  root.write("proc/self/cgroup", "5:cpu,cpuacct:/job\n3:memory:/job\n");
  root.write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "300000\n");
  root.write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  root.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  root.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  root.write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "8192\n");
  EXPECT_DOUBLE_EQ(root.info().cgroup_quota, 3.0);
  EXPECT_EQ(root.info().memory_bytes, 8192u);
}

TEST(CpuInfo, GivesDefaultsForGarbageAndEmptyTrees) {
  const FakeRoot root;
  EXPECT_GE(root.info().online_cores, 1);
  root.write("proc/self/status", "Cpus_allowed_list:\t7-3,x\n");
  root.write("proc/self/cgroup", "nonsense\n0::\n");
  root.write("sys/fs/cgroup/cpu.max", "-5 0\n");
  EXPECT_GE(root.info().online_cores, 1);
  EXPECT_EQ(root.info().cgroup_quota, 0);
}

TEST(CpuInfo, OfThisMachineIsPlausible) {
  const CpuInfo info = cpu_info();
  EXPECT_GE(info.online_cores, 1);
  EXPECT_GT(info.memory_bytes, 1u << 20);
}

TEST(ThreadCount, PrefersTheRequestThenTheVariable) {
  const Environment variable("OASR_THREADS", "3");
  EXPECT_EQ(thread_count(5).value(), 5);
  EXPECT_EQ(thread_count(0).value(), 3);
}

TEST(ThreadCount, RefusesWhatIsNotANumberOfThreads) {
  for (const char* text : {"0", "-1", "2x", "many", "5000", "99999999999999"}) {
    const Environment variable("OASR_THREADS", text);
    EXPECT_FALSE(thread_count(0)) << text;
  }
  EXPECT_FALSE(thread_count(100000));
}

TEST(SelectedIsa, FollowsTheVariableAndRefusesUnknownNames) {
  {
    const Environment variable("OASR_ISA", "scalar");
    EXPECT_EQ(selected_isa().value(), Isa::scalar);
  }
  {
    const Environment variable("OASR_ISA", "sse9");
    EXPECT_EQ(selected_isa().error().code, ErrorCode::invalid_argument);
  }
  EXPECT_EQ(selected_isa().value(), detected_isa());
}

TEST(SelectedIsa, IsTheReferenceWhereLayersAreToRunIt) {
  for (const char* name : {"reference", "torch"}) {
    const Environment variable("OASR_LAYERS_BACKEND", name);
    EXPECT_EQ(selected_isa().value(), Isa::reference) << name;
    const Environment lane("OASR_ISA", "scalar");
    EXPECT_EQ(selected_isa().error().where, "OASR_ISA") << name;
  }
  for (const char* name : {"auto", "native"}) {
    const Environment variable("OASR_LAYERS_BACKEND", name);
    EXPECT_EQ(selected_isa().value(), detected_isa()) << name;
  }
  const Environment variable("OASR_LAYERS_BACKEND", "cuda");
  EXPECT_EQ(selected_isa().error().where, "OASR_LAYERS_BACKEND");
  EXPECT_EQ(isa_name(Isa::reference), "reference");
  EXPECT_EQ(isa_name(Isa::avx2), "avx2");
}

TEST(SelectedIsa, RefusesWhatTheProcessorDoesNotHave) {
  for (const auto& [isa, name] : isa_names()) {
    const Environment variable("OASR_ISA", std::string(name).c_str());
    const auto selected = selected_isa();
    if (isa_supported(isa)) {
      EXPECT_EQ(selected.value(), isa);
    } else {
      EXPECT_EQ(selected.error().code, ErrorCode::unsupported) << name;
    }
  }
}

TEST(Isa, CoversThoseBeforeItButAvxVnniOnlyItself) {
  EXPECT_TRUE(isa_covers(Isa::amx, Isa::avx512_vnni));
  EXPECT_TRUE(isa_covers(Isa::avx_vnni, Isa::avx_vnni));
  EXPECT_TRUE(isa_covers(Isa::avx_vnni, Isa::avx2));
  EXPECT_FALSE(isa_covers(Isa::avx512, Isa::avx_vnni));
  EXPECT_FALSE(isa_covers(Isa::amx, Isa::avx_vnni));
  EXPECT_FALSE(isa_covers(Isa::avx2, Isa::avx512));
}

}  // namespace
}  // namespace oasr
