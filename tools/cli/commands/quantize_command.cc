// trine quantize: writes a model file with fewer bits per weight.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "runtime/gguf/format.h"
#include "runtime/gguf/quoted.h"
#include "runtime/quantize/quantize.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/options/engine_arguments.h"
#include "tools/cli/terminal/progress.h"
#include "tools/cli/terminal/signals.h"
#include "tools/report/text_table.h"

namespace trine {
namespace {

using quantize::Plan;
using quantize::PlannedTensor;
using quantize::QuantizeResult;

constexpr int64_t kMaxQuantizeThreads = 1024;

struct QuantizeArguments {
  // The words in order: a dry run may have no OUT, and THREADS is optional.
  std::string first;
  std::optional<std::string> second, third, fourth;
  int64_t threads = 0;
  std::string output_type;
  std::string embedding_type;
  std::vector<std::string> tensor_types;
  std::string imatrix;
  bool pure = false;
  bool allow_requantize = false;
  bool leave_output = false;
  bool dry_run = false;
  bool verbose = false;

  std::string in;
  std::string out;  // "": a dry run without one
  std::string type;
};

// Assigns the words to IN, OUT, TYPE and THREADS.
absl::Status ReadWords(QuantizeArguments* a) {
  std::vector<std::string> words = {a->first};
  if (a->second) words.push_back(*a->second);
  if (a->third) words.push_back(*a->third);
  if (a->fourth) words.push_back(*a->fourth);
  int64_t threads = 0;
  if (words.size() > 3 || (words.size() == 3 && a->dry_run)) {
    if (absl::SimpleAtoi(words.back(), &threads)) {
      if (threads < 1 || threads > kMaxQuantizeThreads) {
        return absl::InvalidArgumentError(
            absl::StrCat(threads, " threads: expected 1 to ", kMaxQuantizeThreads));
      }
      if (a->threads != 0 && a->threads != threads) {
        return absl::InvalidArgumentError(
            absl::StrCat("-t says ", a->threads, " threads, the last word ", threads));
      }
      a->threads = threads;
      words.pop_back();
    }
  }
  if (words.size() != 3 && !(words.size() == 2 && a->dry_run)) {
    return absl::InvalidArgumentError(
        a->dry_run ? "expected IN TYPE, perhaps OUT before the type, and a number of threads"
                   : "expected IN OUT TYPE, and perhaps a number of threads");
  }
  a->in = words.front();
  a->type = words.back();
  a->out = words.size() == 3 ? words[1] : "";
  if (a->in.empty() || (a->out.empty() && !a->dry_run)) {
    return absl::InvalidArgumentError("a file name is empty");
  }
  return absl::OkStatus();
}

absl::Status ReadTypes(const QuantizeArguments& a, quantize::PlanOptions* options) {
  const auto mix = quantize::FindMix(a.type);
  if (!mix.ok()) return mix.status();
  options->mix = *mix;
  const auto read = [](const std::string& name, std::optional<quant::Type>* type) {
    if (name.empty()) return absl::OkStatus();
    const auto found = quantize::FindTensorType(name);
    if (found.ok()) *type = *found;
    return found.status();
  };
  absl::Status status = read(a.output_type, &options->output_type);
  if (status.ok()) status = read(a.embedding_type, &options->embedding_type);
  for (const std::string& text : a.tensor_types) {
    const size_t split = text.rfind('=');
    if (split == 0 || split == std::string::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("--tensor-type ", text, ": expected EXPRESSION=TYPE"));
    }
    std::optional<quant::Type> type;
    const absl::Status found = read(text.substr(split + 1), &type);
    if (!found.ok()) return found;
    if (!type) return absl::InvalidArgumentError(absl::StrCat("--tensor-type ", text, ": no type"));
    options->overrides.push_back({text.substr(0, split), *type});
  }
  return status;
}

std::string FormatTensors(const Plan& plan, const std::vector<double>& errors) {
  TextTable table({"tensor", "shape", "from", "to", "bytes", "error"});
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    const PlannedTensor& tensor = plan.tensors[i];
    const gguf::TensorInfo& source = *tensor.source;
    std::string to = tensor.copied() ? "as it is" : gguf::TensorTypeName(tensor.type);
    if (tensor.type != tensor.wanted) {
      absl::StrAppend(&to, ", not ", gguf::TensorTypeName(tensor.wanted));
    }
    const bool measured = i < errors.size() && !tensor.copied();
    table.Add({gguf::Printable(source.name),
               absl::StrJoin(source.dims, source.dims + source.rank, " x "),
               gguf::TensorTypeName(source.type), to, absl::StrCat(tensor.bytes),
               measured ? absl::StrFormat("%.2g", errors[i]) : ""});
  }
  return table.Format("");
}

void PrintSummary(const QuantizeArguments& a, const Plan& plan, const char* mix, double seconds) {
  const auto bits = [&](uint64_t bytes) {
    return plan.parameters == 0
               ? 0.0
               : 8.0 * static_cast<double>(bytes) / static_cast<double>(plan.parameters);
  };
  std::printf("%s: %s, %.2f bits per weight\n", gguf::Printable(a.in).c_str(),
              FormatBytes(plan.source_bytes).c_str(), bits(plan.source_bytes));
  std::printf("%s%s: %s, %.2f bits per weight (%s)\n", a.dry_run ? "would be " : "",
              a.out.empty() ? "a new file" : gguf::Printable(a.out).c_str(),
              FormatBytes(plan.bytes).c_str(), bits(plan.bytes), mix);
  if (a.dry_run) return;
  std::printf("%.1f million weights in %.1f s (%.0f MB/s read, %.1f ns per weight)\n",
              1e-6 * static_cast<double>(plan.parameters), seconds,
              1e-6 * static_cast<double>(plan.source_bytes) / seconds,
              1e9 * seconds / static_cast<double>(std::max<uint64_t>(plan.parameters, 1)));
}

void PrintWarnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    std::fprintf(stderr, "trine: warning: %s\n", warning.c_str());
  }
}

int Quantize(QuantizeArguments a) {
  quantize::PlanOptions options;
  absl::Status status = ReadWords(&a);
  if (status.ok()) status = ReadTypes(a, &options);
  if (!status.ok()) return ComplainOfArguments(status);
  options.pure = a.pure;
  options.allow_requantize = a.allow_requantize;
  options.leave_output = a.leave_output;
  std::optional<quantize::ImportanceMatrix> importance;
  if (!a.imatrix.empty()) {
    auto read = quantize::ImportanceMatrix::Read(a.imatrix);
    if (!read.ok()) return Complain(read.status());
    importance = *std::move(read);
    options.importance = &*importance;
    options.importance_path = a.imatrix;
  }
  const auto file = gguf::File::Open(a.in);
  if (!file.ok()) return Complain(file.status());
  const auto plan = quantize::MakePlan(**file, options);
  if (!plan.ok()) return Complain(About(a.in, plan.status()));
  PrintWarnings(plan->warnings);
  QuantizeResult result;
  double seconds = 0;
  if (!a.dry_run) {
    const InterruptFlag interrupt;
    Progress progress("quantising");
    quantize::QuantizeOptions run;
    run.threads = static_cast<uint32_t>(
        a.threads > 0 ? a.threads : std::max(1u, std::thread::hardware_concurrency()));
    run.measure_errors = a.verbose;
    run.progress = [&](double fraction) {
      return progress.Update(fraction) && !interrupt.raised();
    };
    const auto start = std::chrono::steady_clock::now();
    auto done = quantize::Quantize(**file, *plan, a.out, run);
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    progress.Clear();
    if (!done.ok()) return Complain(done.status());
    result = *std::move(done);
    PrintWarnings(result.warnings);
  }
  if (a.verbose) std::fputs(FormatTensors(*plan, result.errors).c_str(), stdout);
  PrintSummary(a, *plan, options.mix->name, seconds);
  return 0;
}

std::string TypeList() {
  std::string text = "Types:\n";
  for (const quantize::Mix& mix : quantize::AllMixes()) {
    absl::StrAppend(&text, absl::StrFormat("  %-7s %s\n", mix.name, mix.about));
  }
  return text;
}

}  // namespace

void AddQuantizeCommand(Command app, Run* run) {
  auto [command, a] = NewCommand<QuantizeArguments>(
      app, run, Quantize, "quantize", "Write a model file anew, with fewer bits for its weights");
  command.Footer(TypeList());
  command.AddOption("IN", a->first, "A GGUF file, or any part of a split one").Required();
  command.AddOption("OUT", a->second, "The file to write; with --dry-run it may be left out");
  command.AddOption("TYPE", a->third, "One of the types below; always needed");
  command.AddOption("THREADS", a->fourth, "As -t");
  command.AddOption("-t,--threads", a->threads, "Threads; 0: one for each processor")
      .Range(int64_t{0}, kMaxQuantizeThreads)
      .ShowDefault();
  command
      .AddOption("--imatrix", a->imatrix,
                 "Importance matrix: which columns matter most (GGUF or the older format)")
      .Check(NotEmpty);
  command.AddFlag("--allow-requantize", a->allow_requantize,
                  "Also from weights that are quantised already; they lose twice");
  command.AddFlag("--pure", a->pure, "The same type for every matrix");
  command.AddFlag("--leave-output-tensor", a->leave_output,
                  "Keep output.weight as it is (of a model without one: token_embd.weight)");
  command.AddOption("--output-tensor-type", a->output_type, "Type of output.weight")
      .Check(NotEmpty);
  command.AddOption("--token-embedding-type", a->embedding_type, "Type of token_embd.weight")
      .Check(NotEmpty);
  command
      .AddOption("--tensor-type", a->tensor_types,
                 "EXPRESSION=TYPE: the type of every matrix in whose name the regular expression "
                 "is found; the first that matches counts")
      .OptionText("EXPRESSION=TYPE")
      .OneValueEach();
  command.AddFlag("--dry-run", a->dry_run, "Say how large the file would be; OUT may be left out");
  command.AddFlag("-v,--verbose", a->verbose, "One line for each tensor, with its error");
}

}  // namespace trine
