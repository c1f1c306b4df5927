#include "tools/cli/bench/bench_report.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace trine {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

BenchSubject Subject() {
  return {"a \"model\".gguf",
          "llama 1.24B Q4_0",
          700000000,
          1240000000,
          "cpu",
          "a processor",
          "avx2",
          {},
          "0.1.0",
          {{"igpu0", {100, 300, 0, 10, "no mapped files"}, 50}}};
}

// Ten tokens in 2, 1 and 0.5 seconds: 5, 10 and 20 per second.
BenchResult Decode() {
  BenchResult r;
  r.setup.threads = 2;
  r.setup.batch = 2048;
  r.setup.ubatch = 512;
  r.setup.type_k = r.setup.type_v = "f16";
  r.test = {0, 10, 0};
  r.time = "2026-01-31T12:00:00Z";
  r.load_ns = 5000000;
  r.samples_ns = {2000000000, 1000000000, 500000000};
  r.reads = BenchReads{3e8, 1e8, 7e9, 300000000};
  return r;
}

BenchPlan Plan() { return {{Decode().setup}, {Decode().test}}; }

TEST(BenchReportTest, SumsUp) {
  const BenchResult r = Decode();
  EXPECT_THAT(r.TokensPerSecond(), ::testing::ElementsAre(5, 10, 20));
  EXPECT_NEAR(Mean(r.TokensPerSecond()), 35.0 / 3, 1e-9);
  EXPECT_NEAR(Deviation(r.TokensPerSecond()), 7.6376, 1e-4);
  EXPECT_EQ(Deviation({1}), 0);
  EXPECT_NEAR(r.ReadBytesPerSecond(), 35.0 / 3 * 4e8, 1);
  EXPECT_NEAR(r.ShareOfMachine(), 2.0 / 3, 1e-9);
  EXPECT_EQ(BenchResult().ShareOfMachine(), 0);
}

TEST(BenchReportTest, WritesMarkdown) {
  BenchReport report(BenchFormat::kMarkdown, Plan());
  const std::string first = report.Add(Subject(), Decode());
  EXPECT_THAT(first, HasSubstr("| model "));
  EXPECT_THAT(first, HasSubstr("11.67 ± 7.64 |"));
  EXPECT_THAT(first, HasSubstr("|    400.00 |    4.67 |    7.00 |   67 % |"));
  EXPECT_THAT(first, Not(HasSubstr("n_batch")));
  BenchResult prompt = Decode();
  prompt.test = {512, 0, 0};
  prompt.reads.reset();
  const std::string second = report.Add(Subject(), prompt);
  EXPECT_THAT(second, Not(HasSubstr("| model ")));
  EXPECT_THAT(second, HasSubstr("|           |         |         |        |"));
  EXPECT_THAT(report.End(), HasSubstr("load: 5.0 ms with 2 threads\n"));
}

TEST(BenchReportTest, NamesTheChipsOfAllSetups) {
  BenchSubject gpu = Subject();
  gpu.gpus = {"igpu0: a chip, a driver 1.2"};
  BenchReport report(BenchFormat::kMarkdown, Plan());
  report.Add(gpu, Decode());
  report.Add(Subject(), Decode());
  report.Add(gpu, Decode());
  EXPECT_THAT(report.End(),
              HasSubstr("\na processor, avx2; igpu0: a chip, a driver 1.2; trine 0.1.0; 2026-"));
  BenchReport lines(BenchFormat::kJsonLines, Plan());
  EXPECT_EQ(nlohmann::json::parse(lines.Add(gpu, Decode()))["gpu_info"], gpu.gpus[0]);
  BenchSubject unknown = Subject();
  unknown.cpu = unknown.cpu_level = "";
  BenchReport none(BenchFormat::kMarkdown, Plan());
  none.Add(unknown, Decode());
  EXPECT_THAT(none.End(), ::testing::StartsWith("\ntrine 0.1.0; 2026-"));
}

TEST(BenchReportTest, ShowsTheColumnsThatDiffer) {
  BenchPlan plan = Plan();
  plan.setups.push_back(plan.setups[0]);
  plan.setups[1].batch = 64;
  plan.setups[1].type_v = "q8_0";
  BenchReport report(BenchFormat::kMarkdown, plan);
  const std::string text = report.Add(Subject(), Decode());
  EXPECT_THAT(text, HasSubstr("n_batch"));
  EXPECT_THAT(text, HasSubstr("type_v"));
  EXPECT_THAT(text, Not(HasSubstr("type_k")));
}

TEST(BenchReportTest, ShowsTheDevicesThatWereAskedFor) {
  BenchSubject subject = Subject();
  subject.placement = "CPU(16L, fast, matrices on blas0)";
  const std::string usual = BenchReport(BenchFormat::kMarkdown, Plan()).Add(subject, Decode());
  for (const char* column : {"device", "split mode", "override", "numerics", "plugin option"}) {
    EXPECT_THAT(usual, Not(HasSubstr(column)));
  }
  subject.asked = {"cpu,blas0",     "none", "ffn_(up|gate)=blas0", "20", "",
                   "blas0:2.0 GiB", "fast", "blas:tile=64"};
  BenchReport markdown(BenchFormat::kMarkdown, Plan());
  const std::string table = markdown.Add(subject, Decode());
  EXPECT_THAT(
      table,
      ::testing::ContainsRegex(
          "\\| device +\\| split mode \\| override +\\| CPU experts \\| memory +\\| numerics "
          "\\| plugin option"));
  EXPECT_THAT(table, HasSubstr("| cpu,blas0 | none       | ffn_(up\\|gate)=blas0 | 20          "
                               "| blas0:2.0 GiB | fast     | blas:tile=64  |"));
  markdown.Add(subject, Decode());
  EXPECT_THAT(markdown.End(), HasSubstr("\nplacement: CPU(16L, fast, matrices on blas0)\n"));
  BenchReport lines(BenchFormat::kJsonLines, Plan());
  const auto json = nlohmann::json::parse(lines.Add(subject, Decode()));
  EXPECT_EQ(json["devices"], "cpu,blas0");
  EXPECT_EQ(json["split_mode"], "none");
  EXPECT_EQ(json["override_tensor"], "ffn_(up|gate)=blas0");
  EXPECT_EQ(json["n_cpu_moe"], "20");
  EXPECT_EQ(json["device_memory"], "blas0:2.0 GiB");
  EXPECT_EQ(json["numerics"], "fast");
  EXPECT_EQ(json["plugin_options"], "blas:tile=64");
  EXPECT_EQ(json["placement"], subject.placement);
}

TEST(BenchReportTest, ShowsHowBusyDevicesWere) {
  BenchResult r = Decode();
  BenchReport alone(BenchFormat::kMarkdown, Plan());
  alone.Add(Subject(), r);
  EXPECT_THAT(alone.End(), Not(HasSubstr("busy")));
  r.busy = {{"cpu", 0.931}, {"dgpu0", 0.12}};
  BenchReport markdown(BenchFormat::kMarkdown, Plan());
  markdown.Add(Subject(), r);
  EXPECT_THAT(markdown.End(),
              HasSubstr(absl::StrCat("\nbusy in ", r.test.Name(), ": cpu 93 %, dgpu0 12 %\n")));
  BenchReport lines(BenchFormat::kJsonLines, Plan());
  const auto json = nlohmann::json::parse(lines.Add(Subject(), r));
  EXPECT_EQ(json["busy_shares"]["dgpu0"], 0.12);
}

TEST(BenchReportTest, ShowsWhichPartOfTheChoicesWasInSlots) {
  BenchResult r = Decode();
  BenchSubject subject = Subject();
  BenchReport none(BenchFormat::kMarkdown, Plan());
  EXPECT_THAT(none.Add(subject, r), Not(HasSubstr("hot experts")));
  EXPECT_THAT(none.End(), Not(HasSubstr("slots")));
  BenchReport lines(BenchFormat::kJsonLines, Plan());
  const auto without = nlohmann::json::parse(lines.Add(subject, r));
  EXPECT_EQ(without["hot_experts"], "");
  for (const char* name : {"expert_choices", "expert_slot_share", "experts_moved"}) {
    EXPECT_TRUE(without[name].is_null()) << name;
  }
  subject.asked.hot_experts = "37";
  r.slots = {4000, 2852, 12, uint64_t{34} << 20};
  BenchReport markdown(BenchFormat::kMarkdown, Plan());
  EXPECT_THAT(markdown.Add(subject, r), HasSubstr("| hot experts |"));
  EXPECT_THAT(markdown.End(), HasSubstr(absl::StrCat(
                                  "\nexperts in slots in ", r.test.Name(),
                                  ": 71.3 % of 4000 choices, 12 experts moved there, 34 MiB\n")));
  const auto json = nlohmann::json::parse(lines.Add(subject, r));
  EXPECT_EQ(json["hot_experts"], "37");
  EXPECT_EQ(json["expert_choices"], 4000);
  EXPECT_DOUBLE_EQ(json["expert_slot_share"], 0.713);
  EXPECT_EQ(json["experts_moved"], 12);
  EXPECT_EQ(json["expert_bytes_moved"], uint64_t{34} << 20);
}

TEST(BenchReportTest, ShowsOpsAndWhatIsAroundThem) {
  BenchResult r = Decode();
  r.ops = BenchOps{10, 100000000, 90000000, {{"matmul", 70, 60000000}, {"wait", 700, 20000000}}};
  BenchReport markdown(BenchFormat::kMarkdown, Plan());
  markdown.Add(Subject(), r);
  const std::string text = markdown.End();
  EXPECT_THAT(text, ::testing::ContainsRegex("matmul +70 +6.0000 +60.0 %"));
  EXPECT_THAT(text, ::testing::ContainsRegex("outside plan runs +1.0000 ms per token +10.0 %"));
  EXPECT_THAT(text, ::testing::ContainsRegex("outside ops +1.0000 ms per token +10.0 %"));
  BenchReport lines(BenchFormat::kJsonLines, Plan());
  const auto json = nlohmann::json::parse(lines.Add(Subject(), r));
  EXPECT_EQ(json["op_times"]["ops"][0]["name"], "matmul");
  EXPECT_EQ(json["op_times"]["op_ns_per_token"], 8e6);
  r.ops->ops.clear();
  BenchReport none(BenchFormat::kMarkdown, Plan());
  none.Add(Subject(), r);
  EXPECT_THAT(none.End(), HasSubstr("gives no times of single ops"));
}

TEST(BenchReportTest, WritesJsonAndLines) {
  BenchReport whole(BenchFormat::kJson, Plan());
  std::string text = whole.Add(Subject(), Decode());
  text += whole.Add(Subject(), Decode());
  const auto json = nlohmann::json::parse(text + whole.End());
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[1]["model_filename"], "a \"model\".gguf");
  EXPECT_EQ(json[1]["samples_ns"].size(), 3u);
  EXPECT_EQ(json[1]["samples_ts"][2], 20);
  EXPECT_EQ(json[1]["bytes_per_token"], 4e8);
  ASSERT_EQ(json[1]["weights"].size(), 1u);
  EXPECT_EQ(json[1]["weights"][0]["device"], "igpu0");
  EXPECT_EQ(json[1]["weights"][0]["arena_bytes"], 300);
  EXPECT_EQ(json[1]["weights"][0]["refusal"], "no mapped files");
  EXPECT_EQ(BenchReport(BenchFormat::kJson, Plan()).End(), "[]\n");
  BenchReport lines(BenchFormat::kJsonLines, Plan());
  BenchResult prompt = Decode();
  prompt.reads.reset();
  const std::string line = lines.Add(Subject(), prompt);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_TRUE(nlohmann::json::parse(line)["bytes_per_token"].is_null());
}

TEST(BenchReportTest, WritesCsv) {
  BenchReport report(BenchFormat::kCsv, Plan());
  const std::string text = report.Add(Subject(), Decode());
  EXPECT_THAT(text, HasSubstr("\"version\",\"cpu_info\""));
  EXPECT_THAT(text, HasSubstr("\"a \"\"model\"\".gguf\""));
  EXPECT_THAT(text, Not(HasSubstr("samples")));
  EXPECT_THAT(report.Add(Subject(), Decode()), Not(HasSubstr("version")));
  EXPECT_EQ(report.End(), "");
}

}  // namespace
}  // namespace trine
