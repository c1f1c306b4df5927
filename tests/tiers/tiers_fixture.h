// The fixture of tests that run CPU, Vulkan and HIP in one process, the GPUs with software drivers.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dispatch/cost/device_costs.h"
#include "gmock/gmock.h"
#include "runtime/base/machine_report.h"
#include "runtime/engine/generate.h"
#include "runtime/engine/model_setup.h"
#include "runtime/graph/capture_file.h"
#include "runtime/graph/graph_model.h"
#include "runtime/graph/replay.h"
#include "runtime/make_model/presets.h"
#include "runtime/make_model/test_bytes.h"
#include "runtime/placement/calibration.h"
#include "tests/model/engine_test_util.h"

namespace trine {

inline constexpr int64_t kLayers = 5;

class TiersTest : public testing::Test {
 protected:
  TiersTest() : file_(Model()) {}

  static std::vector<std::byte> Model() {
    TinyModelSpec spec;
    spec.n_layers = kLayers;
    spec.n_ctx = 512;
    spec.type = quant::Type::kQ8_0;
    spec.n_embd = 128;
    spec.n_ff = 256;
    return MakeTinyModel(spec).ToBytes();
  }

  EngineOptions Options() const {
    EngineOptions options = TestOptions(file_.path());
    options.plugins.search.explicit_paths = {TRINE_CPU_PLUGIN, TRINE_VULKAN_PLUGIN,
                                             TRINE_HIP_PLUGIN};
    options.threads = 1;
    return options;
  }

  // Writes a calibration in which the products of devices cost multiples of a CPU's guessed costs.
  static void Calibrate(const EngineOptions& options, const std::map<std::string, double>& factors,
                        const std::string& path) {
    MachineOptions machine;
    machine.registry = options.plugins;
    const Inventory inventory = DescribeMachine(machine);
    Calibration calibration;
    for (const InventoryDevice& device : inventory.devices) {
      const auto factor = factors.find(device.tier_name);
      if (factor == factors.end()) continue;
      trine_device_info cpu{};
      cpu.tier = TRINE_TIER_CPU;
      DeviceCosts costs = GuessCosts(cpu, 1);
      for (auto& [type, curve] : costs.matmul) {
        std::vector<CostCurve::Point> points = curve.points();
        for (CostCurve::Point& p : points) p.cost *= factor->second;
        curve = CostCurve(std::move(points));
      }
      calibration.Set(CalibrationKey(inventory, device, 1), std::move(costs));
    }
    ASSERT_TRUE(calibration.Write(path).ok());
  }

  // Returns a split over some of the tiers in any order, by layers or by shares.
  static std::string RandomSplit(std::mt19937* random, bool rows) {
    std::vector<std::string> devices = {"cpu", "igpu", "dgpu"};
    std::shuffle(devices.begin(), devices.end(), *random);
    devices.resize((rows ? 2 : 1) + (*random)() % (rows ? 2 : 3));
    return Split(devices, random);
  }

  // Returns a split by layers over all tiers.
  static std::string RandomLayers(std::mt19937* random) {
    std::vector<std::string> devices = {"cpu", "igpu", "dgpu"};
    std::shuffle(devices.begin(), devices.end(), *random);
    return Split(devices, random);
  }

  static std::string Split(const std::vector<std::string>& devices, std::mt19937* random) {
    std::vector<int64_t> counts(devices.size(), 1);
    for (auto left = kLayers - static_cast<int64_t>(devices.size()); left > 0; --left) {
      ++counts[(*random)() % counts.size()];
    }
    std::string split;
    for (size_t i = 0; i < devices.size(); ++i) {
      absl::StrAppend(&split, i == 0 ? "" : ",", devices[i], ":", counts[i]);
    }
    return split;
  }

  // Runs all prompts together. Gives the text of each after its hash, as far as it came.
  static absl::Status Together(Engine* engine, const std::vector<std::vector<int32_t>>& prompts,
                               const std::vector<int64_t>& lengths, uint64_t seed,
                               std::vector<std::string>* said) {
    std::vector<std::unique_ptr<Session>> sessions;
    std::vector<Session*> pointers;
    std::vector<GenerateOptions> options(prompts.size());
    std::vector<Generation> results(prompts.size());
    for (size_t i = 0; i < prompts.size(); ++i) {
      SessionOptions session_options;
      session_options.logits_hash = true;
      session_options.ignore_eos = true;
      session_options.sampler.seed = seed + i;
      auto session = Session::Create(engine, session_options);
      EXPECT_TRUE(session.ok()) << session.status();
      EXPECT_TRUE((*session)->Append(prompts[i]).ok());
      sessions.push_back(*std::move(session));
      pointers.push_back(sessions.back().get());
      options[i].max_tokens = lengths[i];
    }
    const absl::Status status = GenerateTogether(pointers, options, results);
    said->clear();
    for (size_t i = 0; i < results.size(); ++i) {
      said->push_back(absl::StrCat(sessions[i]->logits_hash().Text(), " ", results[i].text));
    }
    return status;
  }

  static std::vector<std::string> MustSay(Engine* engine,
                                          const std::vector<std::vector<int32_t>>& prompts,
                                          const std::vector<int64_t>& lengths, uint64_t seed) {
    std::vector<std::string> said;
    const absl::Status status = Together(engine, prompts, lengths, seed, &said);
    EXPECT_TRUE(status.ok()) << status;
    return said;
  }

  // Makes one to three faults, each at some moment of a load, of a prompt or of an answer.
  static std::string RandomFaults(std::mt19937* random, std::set<std::string>* devices) {
    const auto pick = [&](const std::vector<std::string>& list) {
      return list[(*random)() % list.size()];
    };
    std::string faults;
    for (uint32_t n = 1 + (*random)() % 3; n > 0; --n) {
      const std::string device = pick({"cpu", "igpu", "igpu", "dgpu", "dgpu"});
      const std::string kind = pick({"lost", "lost", "oom", "timeout=10", "garbage=status",
                                     "garbage=nan", "garbage=tiny", "hang"});
      const bool values = kind == "garbage=nan" || kind == "garbage=tiny";
      std::string moment;
      switch ((*random)() % 3) {
        case 0:
          moment = values ? "run=1"
                          : pick({"open=1", "load", "alloc=4", "import=1", "query=1", "plan=1"});
          break;
        case 1:
          moment = absl::StrCat(values ? "run" : pick({"run", "write", "read"}), "=",
                                1 + (*random)() % 4);
          break;
        default:
          moment = absl::StrCat("token=", 1 + (*random)() % 8);
      }
      devices->insert(device);
      absl::StrAppend(&faults, faults.empty() ? "" : ";", device, ":", kind, "@", moment);
    }
    return faults;
  }

  TempFile file_;
};

}  // namespace trine
