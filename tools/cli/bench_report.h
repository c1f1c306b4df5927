// The output of `trine bench`, written as results come.
#ifndef TRINE_TOOLS_CLI_BENCH_REPORT_H_
#define TRINE_TOOLS_CLI_BENCH_REPORT_H_

#include <string>
#include <vector>

#include "tools/cli/bench_plan.h"
#include "tools/cli/bench_result.h"

namespace trine {

enum class BenchFormat { kMarkdown, kCsv, kJson, kJsonLines };

// Text to be printed, in order: one Add() per result, then End(). What stands before the first
// result comes with it.
class BenchReport {
 public:
  // Columns of setup values appear in Markdown where the plan's setups differ in them.
  BenchReport(BenchFormat format, const BenchPlan& plan);

  std::string Add(const BenchSubject& subject, const BenchResult& result);
  std::string End();

 private:
  std::string AddRow(const BenchSubject& subject, const BenchResult& result);
  void NoteChips(const BenchSubject& subject);
  std::string Notes() const;

  BenchFormat format_;
  bool batches_ = false, ubatches_ = false, types_k_ = false, types_v_ = false, splits_ = false,
       dispatch_ = false;
  bool decodes_ = false;            // a test has reads to speak of
  std::vector<std::string> chips_;  // of all subjects
  std::string version_;
  std::vector<BenchResult> results_;  // those so far
};

}  // namespace trine

#endif  // TRINE_TOOLS_CLI_BENCH_REPORT_H_
