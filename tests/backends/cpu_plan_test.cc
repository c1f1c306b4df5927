// Tests how plans of the CPU backend use trials of ways (backends/cpu/way_trials.h).
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "backends/cpu/device.h"
#include "tests/abi/graph_builder.h"

namespace trine::cpu {
namespace {

using cpu_kernels::Way;

constexpr int64_t kK = 32, kFeatures = 16, kColumns = 4;

std::map<Way, uint32_t> seen;

// A plan of one matmul, run by kernels that note which way they are told to take.
class PlanWaysTest : public testing::Test {
 protected:
  PlanWaysTest() {
    seen.clear();
    table_.matmul = [](const auto&, const auto&, const auto*, const auto*, const auto&,
                       cpu_kernels::Range,
                       const cpu_kernels::Tuning& tuning) { ++seen[tuning.way]; };
    table_.matmul_has_ways = [](const cpu_kernels::View&, int64_t) { return true; };
    host_.struct_size = sizeof(host_);
    host_.worker_count = 1;
    host_.profiling = &profiling_;
    host_.parallel_run = [](void* self, trine_worker_fn fn, void* arg) -> trine_status {
      if (static_cast<PlanWaysTest*>(self)->team_fails_) return TRINE_ABORTED;
      fn(arg, 0, 1);
      return TRINE_OK;
    };
    host_.self = this;
    AddTensor({kK, kFeatures}, TRINE_ROLE_CONSTANT);
    AddTensor({kK, kColumns}, TRINE_ROLE_IO);
    AddTensor({kFeatures, kColumns}, TRINE_ROLE_IO);
    graph_.Op(TRINE_OP_MATMUL, {0, 1}, {2});
    buffer_.data = memory_;
    buffer_.bytes = sizeof(memory_);
  }

  void AddTensor(std::vector<int64_t> dims, uint32_t role) {
    const uint32_t slot = graph_.Tensor(TRINE_DTYPE_F32, std::move(dims), role, kSlotBytes);
    bindings_.push_back({slot, 0, {&buffer_, slot * kSlotBytes, kSlotBytes}});
  }

  trine_plan* MakePlan() {
    const trine_graph graph = graph_.Abi();
    trine_plan_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.graph = &graph;
    desc.bindings = bindings_.data();
    desc.n_bindings = static_cast<uint32_t>(bindings_.size());
    desc.binding_stride = sizeof(trine_binding);
    trine_plan* plan = nullptr;
    trine_error err{};
    EXPECT_EQ(PlanCalls::Create(&device_, &desc, &plan, &err), TRINE_OK) << err.message;
    return plan;
  }

  trine_status Run(trine_plan* plan) {
    trine_run_args args{};
    args.struct_size = sizeof(args);
    trine_error err{};
    return PlanCalls::Run(plan, &args, &err);
  }

  static constexpr uint64_t kSlotBytes = 4096;

  cpu_kernels::KernelTable table_ = cpu_kernels::kReferenceLevel;
  cpu_kernels::Level level_ = {"noting", {}, &table_, false};
  uint32_t profiling_ = 0;
  bool team_fails_ = false;
  trine_host host_{};
  trine_backend backend_{&host_, {&level_, ""}, "", {}, std::make_unique<WayTrials>()};
  trine_device device_{&backend_};
  alignas(64) std::byte memory_[3 * kSlotBytes] = {};
  trine_buffer buffer_;
  sdk::GraphBuilder graph_;
  std::vector<trine_binding> bindings_;
};

TEST_F(PlanWaysTest, FromItsSecondRunOnAPlanTriesBothWays) {
  trine_plan* const plan = MakePlan();
  ASSERT_NE(plan, nullptr);
  EXPECT_EQ(Run(plan), TRINE_OK);
  EXPECT_EQ(seen, (std::map<Way, uint32_t>{{Way::kUsual, 1}}));
  for (uint32_t i = 0; i < 2 * WayTrial::kSamples; ++i) EXPECT_EQ(Run(plan), TRINE_OK);
  EXPECT_EQ(seen[Way::kDirect], WayTrial::kSamples);
  EXPECT_EQ(seen[Way::kTiles], WayTrial::kSamples);
  WayTrial& trial = backend_.ways->Of({quant::Type::kF32, false, kK, kFeatures}).For(kColumns);
  EXPECT_NE(trial.chosen(), Way::kUsual);
  PlanCalls::Destroy(plan);

  // The result of the trials holds for the next plan, from its first run on.
  seen.clear();
  trine_plan* const next = MakePlan();
  ASSERT_NE(next, nullptr);
  EXPECT_EQ(Run(next), TRINE_OK);
  EXPECT_EQ(seen, (std::map<Way, uint32_t>{{trial.chosen(), 1}}));
  PlanCalls::Destroy(next);
}

TEST_F(PlanWaysTest, ARunThatFailedIsNoFirstRun) {
  trine_plan* const plan = MakePlan();
  ASSERT_NE(plan, nullptr);
  team_fails_ = true;
  EXPECT_EQ(Run(plan), TRINE_ABORTED);
  team_fails_ = false;
  EXPECT_EQ(Run(plan), TRINE_OK);
  EXPECT_EQ(seen, (std::map<Way, uint32_t>{{Way::kUsual, 1}}));
  PlanCalls::Destroy(plan);
}

}  // namespace
}  // namespace trine::cpu
