// Tests the self-test of exact devices as the host runs it: on the CPU backend's table, whole and
// with functions that are wrong, and what is remembered of it.
#include "plugins/self_test/self_test.h"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plugins/host_services.h"
#include "plugins/self_test/passed_devices.h"
#include "tests/plugins/cpu_table.h"

namespace trine {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

// What the functions of the tests' tables do besides calling the CPU backend's.
std::function<bool(uint32_t kind)> supports;
std::function<void(trine_graph* graph)> before_plan;

trine_status OpQuery(trine_device* device, const trine_graph* graph, uint32_t op,
                     const int64_t* params, trine_op_support* out, trine_error* err) {
  const trine_status status = Cpu().op_query(device, graph, op, params, out, err);
  if (supports && !supports(graph->ops[op].kind)) out->support = TRINE_SUPPORT_NO;
  return status;
}

trine_status PlanCreate(trine_device* device, const trine_plan_desc* desc, trine_plan** out,
                        trine_error* err) {
  trine_plan_desc changed = *desc;
  trine_graph graph = *desc->graph;
  if (before_plan) before_plan(&graph);
  changed.graph = &graph;
  return Cpu().plan_create(device, &changed, out, err);
}

trine_status Throws(trine_plan*, const trine_run_args*, trine_error*) { throw 1; }

class SelfTestTest : public ::testing::Test {
 protected:
  SelfTestTest() : host_(ThreadTeamOptions(), nullptr) {
    table_ = Cpu();
    table_.op_query = OpQuery;
    table_.plan_create = PlanCreate;
    trine_error err{};
    EXPECT_EQ(table_.open(host_.table(), "", &backend_, &err), TRINE_OK) << err.message;
    EXPECT_EQ(table_.device_open(backend_, 0, &device_, &err), TRINE_OK) << err.message;
    options_.numerics = TRINE_NUMERICS_EXACT;
  }
  ~SelfTestTest() override {
    supports = nullptr;
    before_plan = nullptr;
    table_.device_close(device_);
    table_.close(backend_);
  }

  self_test::Result Run() {
    names_.clear();
    return self_test::Run(table_, device_, options_,
                          [&](const std::string& name) { names_.insert(name); });
  }

  HostServices host_;
  trine_plugin table_;
  trine_backend* backend_ = nullptr;
  trine_device* device_ = nullptr;
  self_test::Options options_;
  std::set<std::string> names_;
};

TEST_F(SelfTestTest, TheCpuIsExact) {
  const self_test::Result result = Run();
  EXPECT_EQ(result.failure, "");
  EXPECT_TRUE(result.complete);
  EXPECT_GT(result.run, 60);
  EXPECT_THAT(names_, IsSupersetOf({"matmul of tq1_0", "matmul of packed weights", "mul", "scale",
                                    "attention", "moe_route", "layer_norm"}));
}

TEST_F(SelfTestTest, ABiasThatIsLeftOutIsNoticed) {
  before_plan = [](trine_graph* graph) {
    static trine_op op;
    op = graph->ops[0];
    if (op.kind == TRINE_OP_MATMUL && op.n_in == 3 && graph->n_ops == 1) {
      op.n_in = 2;
      graph->ops = &op;
    }
  };
  EXPECT_THAT(Run().failure, HasSubstr("matmul"));
}

TEST_F(SelfTestTest, WhatADeviceDoesNotHaveIsLeftOut) {
  supports = [](uint32_t kind) { return kind == TRINE_OP_MUL; };
  // Other ops would be wrong.
  before_plan = [](trine_graph* graph) {
    if (graph->ops[0].kind != TRINE_OP_MUL) graph->n_ops = 0;
  };
  const self_test::Result result = Run();
  EXPECT_EQ(result.failure, "");
  EXPECT_TRUE(result.complete);
  EXPECT_EQ(result.run, 1);
}

TEST_F(SelfTestTest, AThrownExceptionIsAFailure) {
  table_.plan_run = Throws;
  const self_test::Result result = Run();
  EXPECT_FALSE(result.could_run);
  EXPECT_FALSE(result.complete);
  EXPECT_THAT(result.failure, HasSubstr("the plugin threw an exception"));
}

TEST_F(SelfTestTest, ATestThatIsCutShortGoesOnWhereItStopped) {
  const int all = Run().run;
  options_.deadline = std::chrono::steady_clock::time_point::min();
  const self_test::Result one = Run();
  EXPECT_EQ(one.run, 1) << "each test gets farther";
  EXPECT_EQ(one.next, 1);
  EXPECT_FALSE(one.complete);
  options_.first = 10;
  const self_test::Result another = Run();
  EXPECT_EQ(another.next, 11) << "graphs that were tested before take no time";
  EXPECT_FALSE(another.complete);
  options_.deadline.reset();
  const self_test::Result rest = Run();
  EXPECT_EQ(rest.run, all - 10);
  EXPECT_TRUE(rest.complete);
}

class PassedDevicesTest : public ::testing::Test {
 protected:
  PassedDevicesTest()
      : folder_(fs::path(::testing::TempDir()) / ("passed." + std::to_string(getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    Write("plugin");
    setenv("TRINE_SELF_TEST_CACHE", (folder_ / "cache").c_str(), 1);
    std::strcpy(info_.name, "Chip");
    std::strcpy(info_.driver, "1.0");
  }
  ~PassedDevicesTest() override {
    unsetenv("TRINE_SELF_TEST_CACHE");
    fs::remove_all(folder_);
  }

  std::string plugin() const { return (folder_ / "plugin.so").string(); }
  void Write(const std::string& text) { std::ofstream(plugin()) << text; }
  bool Knows(const std::string& options = "", uint32_t index = 0) const {
    return PassedDevices(plugin(), options).Recall(index, info_).complete;
  }

  const fs::path folder_;
  trine_device_info info_{};
};

TEST_F(PassedDevicesTest, AreKnownUntilSomethingChanges) {
  EXPECT_FALSE(Knows());
  PassedDevices(plugin(), "").Remember(0, info_, {90, true});
  EXPECT_TRUE(Knows());
  EXPECT_FALSE(Knows("tile=16"));
  EXPECT_FALSE(Knows("", 1));
  std::strcpy(info_.driver, "1.1");
  EXPECT_FALSE(Knows());
  std::strcpy(info_.driver, "1.0");
  Write("another");
  EXPECT_FALSE(Knows());
  Write("plugin");
  EXPECT_TRUE(Knows());
}

TEST_F(PassedDevicesTest, KeepHowFarATestCame) {
  const PassedDevices passed(plugin(), "");
  passed.Remember(0, info_, {17, false});
  EXPECT_EQ(passed.Recall(0, info_).next, 17);
  EXPECT_FALSE(passed.Recall(0, info_).complete);
  passed.Remember(0, info_, {90, true});
  EXPECT_TRUE(passed.Recall(0, info_).complete);
}

TEST_F(PassedDevicesTest, ADamagedFileIsNoFile) {
  const PassedDevices passed(plugin(), "");
  passed.Remember(0, info_, {90, true});
  for (const auto& entry : fs::directory_iterator(folder_ / "cache")) {
    std::fstream(entry.path(), std::ios::in | std::ios::out) << "x";
  }
  EXPECT_FALSE(Knows());
}

TEST_F(PassedDevicesTest, WithoutAFolderNothingIsKept) {
  setenv("TRINE_SELF_TEST_CACHE", "off", 1);
  PassedDevices(plugin(), "").Remember(0, info_, {90, true});
  EXPECT_FALSE(Knows());
  setenv("TRINE_SELF_TEST_CACHE", "/proc/nothing/here", 1);
  PassedDevices(plugin(), "").Remember(0, info_, {90, true});
  EXPECT_FALSE(Knows());
}

}  // namespace
}  // namespace trine
