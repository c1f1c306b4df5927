// Formats the output of `trine bench` as results come in.
#pragma once

#include <string>
#include <vector>

#include "tools/cli/bench/bench_plan.h"

namespace trine {

enum class BenchFormat { kMarkdown, kCsv, kJson, kJsonLines };

// Returns text to print in order: call Add() once per result, then End(). The first Add() also
// returns the text before the first result.
class BenchReport {
 public:
  // Markdown has a column for each setup value in which the plan's setups differ, and for each
  // option about devices that was given.
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
  bool decodes_ = false;                 // some test only decodes, so reads are shown
  std::vector<std::string> chips_;       // the chips of all subjects
  std::vector<std::string> placements_;  // the placements of all subjects
  std::string version_;
  std::vector<BenchResult> results_;  // all results so far
};

}  // namespace trine
