#include "tools/cli/bench/bench_report.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "nlohmann/json.hpp"
#include "tools/cli/output/weights_json.h"
#include "tools/report/text_table.h"

namespace trine {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kGiga = 1e9;
constexpr double kMega = 1e6;
constexpr double kMilli = 1e6;  // nanoseconds

// A file's name may not be UTF-8.
std::string Dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

Json OpsJson(const BenchOps& ops) {
  const auto tokens = static_cast<double>(ops.n_tokens);
  Json list = Json::array();
  for (const OpTime& op : ops.ops) {
    list.push_back({{"name", op.name},
                    {"calls", op.calls},
                    {"ns_per_token", static_cast<double>(op.ns) / tokens},
                    {"share", static_cast<double>(op.ns) / static_cast<double>(ops.wall_ns)}});
  }
  return {{"n_tokens", ops.n_tokens},
          {"wall_ns_per_token", static_cast<double>(ops.wall_ns) / tokens},
          {"run_ns_per_token", static_cast<double>(ops.run_ns) / tokens},
          {"op_ns_per_token", static_cast<double>(ops.OpNs()) / tokens},
          {"ops", std::move(list)}};
}

Json ResultJson(const BenchSubject& subject, const BenchResult& r) {
  std::vector<double> ns(r.samples_ns.begin(), r.samples_ns.end());
  const std::vector<double> speeds = r.TokensPerSecond();
  Json json = {{"version", subject.version},
               {"cpu_info", subject.cpu},
               {"cpu_level", subject.cpu_level},
               {"gpu_info", absl::StrJoin(subject.gpus, "; ")},
               {"backends", subject.backend},
               {"model_filename", subject.model_path},
               {"model_type", subject.model_type},
               {"model_size", subject.model_bytes},
               {"model_n_params", subject.model_parameters},
               {"n_batch", r.setup.batch},
               {"n_ubatch", r.setup.ubatch},
               {"n_threads", r.setup.threads},
               {"type_k", r.setup.type_k},
               {"type_v", r.setup.type_v},
               {"tensor_split", r.setup.tensor_split},
               {"dispatch", r.setup.dispatch},
               {"devices", subject.asked.devices},
               {"split_mode", subject.asked.split_mode},
               {"override_tensor", subject.asked.overrides},
               {"n_cpu_moe", subject.asked.cpu_experts},
               {"hot_experts", subject.asked.hot_experts},
               {"device_memory", subject.asked.memory},
               {"numerics", subject.asked.numerics},
               {"plugin_options", subject.asked.plugin_options},
               {"placement", subject.placement},
               {"test", r.test.Name()},
               {"n_prompt", r.test.n_prompt},
               {"n_gen", r.test.n_gen},
               {"n_depth", r.test.n_depth},
               {"test_time", r.time},
               {"load_ns", r.load_ns},
               {"avg_ns", Mean(ns)},
               {"stddev_ns", Deviation(ns)},
               {"avg_ts", Mean(speeds)},
               {"stddev_ts", Deviation(speeds)}};
  const BenchReads reads = r.reads.value_or(BenchReads{});
  // Write null for what is not known, so that every result has the same members.
  const auto known = [](bool is, double value) { return is ? Json(value) : Json(); };
  const bool machine = reads.machine_bytes_per_second > 0;
  json["weight_bytes_per_token"] = known(r.reads.has_value(), reads.weight_bytes);
  json["kv_bytes_per_token"] = known(r.reads.has_value(), reads.kv_bytes);
  json["bytes_per_token"] = known(r.reads.has_value(), reads.Bytes());
  json["read_bytes_per_second"] = known(r.reads.has_value(), r.ReadBytesPerSecond());
  json["machine_read_bytes_per_second"] = known(machine, reads.machine_bytes_per_second);
  json["machine_read_bytes"] = known(machine, static_cast<double>(reads.machine_bytes));
  json["machine_read_share"] = known(machine, r.ShareOfMachine());
  const bool slots = r.slots.choices > 0;
  const auto count = [&](uint64_t value) { return slots ? Json(value) : Json(); };
  json["expert_choices"] = count(r.slots.choices);
  json["expert_slot_share"] = known(slots, r.slots.Share());
  json["experts_moved"] = count(r.slots.moved);
  json["expert_bytes_moved"] = count(r.slots.moved_bytes);
  json["busy_shares"] = Json::object();
  for (const BusyShare& busy : r.busy) json["busy_shares"][busy.device] = busy.share;
  json["weights"] = WeightsJson(subject.weights);
  json["samples_ns"] = r.samples_ns;
  json["samples_ts"] = speeds;
  if (r.ops) json["op_times"] = OpsJson(*r.ops);
  return json;
}

// Returns the members with a single value as a line of CSV; with `names`, their names instead.
std::string CsvLine(const Json& json, bool names) {
  std::string line;
  for (const auto& [name, value] : json.items()) {
    if (value.is_structured()) continue;
    std::string text = names               ? name
                       : value.is_string() ? value.get<std::string>()
                                           : Dump(value, -1);
    if (!names && value.is_null()) text.clear();
    std::string quoted;
    for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
    absl::StrAppend(&line, line.empty() ? "" : ",", "\"", quoted, "\"");
  }
  return line + "\n";
}

std::string FormatParameters(uint64_t count) {
  const auto value = static_cast<double>(count);
  return count >= 1000000000 ? absl::StrFormat("%.2f B", value / 1e9)
                             : absl::StrFormat("%.2f M", value / 1e6);
}

struct Cell {
  const char* title;
  size_t width;
  bool right;
  std::string text;
};

// Counts characters: continuation bytes of UTF-8 don't count.
size_t Width(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string Padded(const std::string& text, size_t width, bool right) {
  const size_t have = Width(text);
  const std::string blanks(have < width ? width - have : 0, ' ');
  return right ? blanks + text : text + blanks;
}

std::string OpsText(const BenchResult& r) {
  const BenchOps& ops = *r.ops;
  const auto tokens = static_cast<double>(ops.n_tokens);
  const auto wall = static_cast<double>(ops.wall_ns);
  std::string text = absl::StrFormat("\nOps of %s, %d thread%s, one repetition:\n\n", r.test.Name(),
                                     r.setup.threads, r.setup.threads == 1 ? "" : "s");
  if (ops.ops.empty()) {
    text += "The backend gives no times of single ops.\n";
  } else {
    TextTable table({"op", "calls", "ms per token", "share"});
    for (const OpTime& op : ops.ops) {
      const auto ns = static_cast<double>(op.ns);
      table.Add({op.name, absl::StrCat(op.calls), absl::StrFormat("%.4f", ns / tokens / kMilli),
                 absl::StrFormat("%.1f %%", 100 * ns / wall)});
    }
    text += table.Format();
  }
  const auto line = [&](const char* what, double ns) {
    absl::StrAppendFormat(&text, "  %-28s%10.4f ms per token  %5.1f %%\n", what,
                          ns / tokens / kMilli, 100 * ns / wall);
  };
  const auto run = static_cast<double>(ops.run_ns);
  text += "\n";
  line("wall time", wall);
  line("outside plan runs", wall - run);
  if (!ops.ops.empty()) line("in plan runs, outside ops", run - static_cast<double>(ops.OpNs()));
  return text;
}

// Returns a text such as "cpu 93 %, dgpu0 12 %".
std::string BusyText(const std::vector<BusyShare>& shares) {
  return absl::StrJoin(shares, ", ", [](std::string* text, const BusyShare& busy) {
    absl::StrAppendFormat(text, "%s %.0f %%", busy.device, 100 * busy.share);
  });
}

// Returns a text such as "71.3 % of 38400 choices, 12 experts moved there, 34 MiB".
std::string SlotText(const SlotUse& slots) {
  if (slots.in_place) {
    return absl::StrFormat("%.1f %% of %d choices", 100 * slots.Share(), slots.choices);
  }
  return absl::StrFormat("%.1f %% of %d choices, %d %s moved there, %.0f MiB", 100 * slots.Share(),
                         slots.choices, slots.moved, slots.moved == 1 ? "expert" : "experts",
                         static_cast<double>(slots.moved_bytes) / (1 << 20));
}

template <class Get>
bool Differs(const std::vector<BenchSetup>& setups, const Get& get) {
  return std::any_of(setups.begin(), setups.end(),
                     [&](const BenchSetup& s) { return get(s) != get(setups.front()); });
}

// Adds a column for each option about devices that was given. All rows have the same columns,
// because all setups share these options.
void AddAsked(const BenchDevices& asked, std::vector<Cell>* cells) {
  const BenchDevices usual;
  const auto add = [&](const char* title, size_t width, std::string BenchDevices::*option) {
    if (asked.*option == usual.*option) return;
    const std::string text = absl::StrReplaceAll(asked.*option, {{"|", "\\|"}});
    cells->push_back({title, std::max(width, Width(text)), false, text});
  };
  add("device", 8, &BenchDevices::devices);
  add("split mode", 10, &BenchDevices::split_mode);
  add("override", 16, &BenchDevices::overrides);
  add("CPU experts", 11, &BenchDevices::cpu_experts);
  add("hot experts", 11, &BenchDevices::hot_experts);
  add("memory", 12, &BenchDevices::memory);
  add("numerics", 8, &BenchDevices::numerics);
  add("plugin option", 13, &BenchDevices::plugin_options);
}

// Adds the text, unless it is empty or noted already.
void NoteOnce(const std::string& text, std::vector<std::string>* notes) {
  if (text.empty() || std::find(notes->begin(), notes->end(), text) != notes->end()) return;
  notes->push_back(text);
}

}  // namespace

BenchReport::BenchReport(BenchFormat format, const BenchPlan& plan) : format_(format) {
  batches_ = Differs(plan.setups, [](const BenchSetup& s) { return s.batch; });
  ubatches_ = Differs(plan.setups, [](const BenchSetup& s) { return s.ubatch; });
  types_k_ = Differs(plan.setups, [](const BenchSetup& s) { return s.type_k; });
  types_v_ = Differs(plan.setups, [](const BenchSetup& s) { return s.type_v; });
  dispatch_ = Differs(plan.setups, [](const BenchSetup& s) { return s.dispatch; });
  splits_ = Differs(plan.setups, [](const BenchSetup& s) { return s.tensor_split; });
  decodes_ = std::any_of(plan.tests.begin(), plan.tests.end(),
                         [](const BenchTest& t) { return t.IsDecode(); });
}

std::string BenchReport::AddRow(const BenchSubject& subject, const BenchResult& r) {
  std::vector<Cell> cells = {
      {"model", 24, false, subject.model_type},
      {"size", 10, true, FormatBytes(subject.model_bytes)},
      {"params", 10, true, FormatParameters(subject.model_parameters)},
      {"backend", 8, false, subject.backend},
      {"threads", 7, true, absl::StrCat(r.setup.threads)},
  };
  if (batches_) cells.push_back({"n_batch", 7, true, absl::StrCat(r.setup.batch)});
  if (ubatches_) cells.push_back({"n_ubatch", 8, true, absl::StrCat(r.setup.ubatch)});
  if (types_k_) cells.push_back({"type_k", 6, false, r.setup.type_k});
  if (types_v_) cells.push_back({"type_v", 6, false, r.setup.type_v});
  if (splits_) cells.push_back({"split", 12, false, r.setup.tensor_split});
  if (dispatch_) cells.push_back({"dispatch", 8, false, r.setup.dispatch});
  AddAsked(subject.asked, &cells);
  const std::vector<double> speeds = r.TokensPerSecond();
  cells.push_back({"test", 16, false, r.test.Name()});
  cells.push_back(
      {"t/s", 18, true, absl::StrFormat("%.2f ± %.2f", Mean(speeds), Deviation(speeds))});
  if (decodes_) {
    const BenchReads reads = r.reads.value_or(BenchReads{});
    const bool machine = reads.machine_bytes_per_second > 0;
    const auto number = [](bool is, const char* unit, double value) {
      return is ? absl::StrFormat("%.2f%s", value, unit) : std::string();
    };
    cells.push_back({"MB/token", 9, true, number(r.reads.has_value(), "", reads.Bytes() / kMega)});
    cells.push_back(
        {"GB/s", 7, true, number(r.reads.has_value(), "", r.ReadBytesPerSecond() / kGiga)});
    cells.push_back(
        {"limit", 7, true, number(machine, "", reads.machine_bytes_per_second / kGiga)});
    cells.push_back(
        {"used", 6, true, machine ? absl::StrFormat("%.0f %%", 100 * r.ShareOfMachine()) : ""});
  }
  std::string head = "|", rule = "|", row = "|";
  for (const Cell& cell : cells) {
    absl::StrAppend(&head, " ", Padded(cell.title, cell.width, cell.right), " |");
    absl::StrAppend(&rule, " ", std::string(cell.width - 1, '-'), cell.right ? ":" : "-", " |");
    absl::StrAppend(&row, " ", Padded(cell.text, cell.width, cell.right), " |");
  }
  if (results_.empty()) row = head + "\n" + rule + "\n" + row;
  return row + "\n";
}

// Setups may use different devices: note each chip once.
void BenchReport::NoteChips(const BenchSubject& subject) {
  const bool both = !subject.cpu.empty() && !subject.cpu_level.empty();
  std::vector<std::string> chips = subject.gpus;
  chips.insert(chips.begin(), absl::StrCat(subject.cpu, both ? ", " : "", subject.cpu_level));
  for (const std::string& chip : chips) NoteOnce(chip, &chips_);
}

std::string BenchReport::Notes() const {
  const std::string chips = absl::StrJoin(chips_, "; ");
  std::string text = absl::StrCat("\n", chips, chips.empty() ? "" : "; ", "trine ", version_, "; ",
                                  results_.front().time, "\nload:");
  for (size_t i = 0; i < results_.size(); ++i) {
    const BenchResult& r = results_[i];
    // Results with the same load time are of the same setup and load.
    if (i > 0 && r.load_ns == results_[i - 1].load_ns) continue;
    absl::StrAppendFormat(&text, "%s %.1f ms with %d thread%s", i == 0 ? "" : ",",
                          static_cast<double>(r.load_ns) / kMilli, r.setup.threads,
                          r.setup.threads == 1 ? "" : "s");
  }
  text += "\n";
  if (!placements_.empty()) {
    absl::StrAppend(&text, "placement: ", absl::StrJoin(placements_, "; "), "\n");
  }
  for (const BenchResult& r : results_) {
    if (!r.busy.empty()) {
      absl::StrAppend(&text, "busy in ", r.test.Name(), ": ", BusyText(r.busy), "\n");
    }
  }
  for (const BenchResult& r : results_) {
    if (r.slots.choices > 0) {
      absl::StrAppend(&text,
                      r.slots.in_place ? "experts without copies in " : "experts in slots in ",
                      r.test.Name(), ": ", SlotText(r.slots), "\n");
    }
  }
  for (const BenchResult& r : results_) {
    if (r.ops) text += OpsText(r);
  }
  return text;
}

std::string BenchReport::Add(const BenchSubject& subject, const BenchResult& result) {
  const bool first = results_.empty();
  version_ = subject.version;
  NoteChips(subject);
  NoteOnce(subject.placement, &placements_);
  std::string text;
  switch (format_) {
    case BenchFormat::kMarkdown:
      text = AddRow(subject, result);
      break;
    case BenchFormat::kCsv: {
      const Json json = ResultJson(subject, result);
      text = absl::StrCat(first ? CsvLine(json, true) : "", CsvLine(json, false));
      break;
    }
    case BenchFormat::kJson:
      text = absl::StrCat(first ? "[\n" : ",\n", Dump(ResultJson(subject, result), 2));
      break;
    case BenchFormat::kJsonLines:
      text = Dump(ResultJson(subject, result), -1) + "\n";
      break;
  }
  results_.push_back(result);
  return text;
}

std::string BenchReport::End() {
  if (format_ == BenchFormat::kJson) return results_.empty() ? "[]\n" : "\n]\n";
  if (format_ == BenchFormat::kMarkdown && !results_.empty()) return Notes();
  return "";
}

}  // namespace trine
