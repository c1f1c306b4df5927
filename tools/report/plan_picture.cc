#include <algorithm>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "tools/report/plan_report.h"
#include "tools/report/text_table.h"

namespace trine {
namespace {

constexpr double kWidth = 900, kMargin = 20, kRow = 26, kLabel = 150;
constexpr const char* kColours[] = {"#4e79a7", "#59a14f", "#e15759", "#f28e2b",
                                    "#76b7b2", "#b07aa1", "#9c755f", "#edc948"};

std::string Escaped(const std::string& text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
}

const char* Colour(size_t device) { return kColours[device % std::size(kColours)]; }

class Picture {
 public:
  explicit Picture(const PlanReport& r) : r_(r) {}

  std::string Draw() {
    Text(kMargin, 15, absl::StrCat(r_.model, ", a context of ", r_.context));
    y_ += 12;
    Strip();
    Moved();
    Bars("decode", true, r_.decode);
    Bars("prefill", false, r_.prefill);
    Memory();
    LeftOut();
    return absl::StrFormat(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
        "viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\" font-size=\"13\">\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n%s</svg>\n",
        kWidth, y_ + kMargin, kWidth, y_ + kMargin, body_);
  }

 private:
  const PlanProblem& problem() const { return r_.report.problem.plan; }
  const std::vector<PlacementSegment>& Segments() const { return r_.report.placement.segments; }
  const std::string& Name(size_t device) const { return problem().devices[device].name; }

  void Text(double x, double height, const std::string& text) {
    y_ += height;
    TextAt(x, y_, text);
  }

  void TextAt(double x, double y, const std::string& text) {
    absl::StrAppendFormat(&body_, "<text x=\"%.1f\" y=\"%.1f\">%s</text>\n", x, y, Escaped(text));
  }

  void Box(double x, double width, double height, const char* colour, const std::string& title) {
    absl::StrAppendFormat(&body_,
                          "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" fill=\"%s\" "
                          "stroke=\"white\" stroke-width=\"0.5\"><title>%s</title></rect>\n",
                          x, y_, std::max(width, 0.5), height, colour, Escaped(title));
  }

  // Draws the units in model order, all equally wide.
  void Strip() {
    const double each = (kWidth - 2 * kMargin) / problem().units();
    double x = kMargin;
    for (const PlacementSegment& s : r_.report.placement.segments) {
      const int units = s.range.layers() + (s.range.embedding ? 1 : 0) + (s.range.head ? 1 : 0);
      const double begin = x;
      for (int i = 0; i < units; ++i, x += each) {
        Box(x, each, 30, Colour(s.range.device), DescribeSegment(s.range));
      }
      TextAt(begin, y_ + 46, absl::StrCat(Name(s.range.device), ": ", DescribeSegment(s.range)));
    }
    y_ += 66;
  }

  void Label(const std::string& text) { TextAt(kMargin, y_ + 15, text); }

  // Draws one pass: segments and the transfers between them, one after the other.
  void Bars(const std::string& what, bool decode, const std::optional<MeasuredPass>& measured) {
    const Placement& placement = r_.report.placement;
    const auto predicted = static_cast<double>(decode ? placement.decode_ns : placement.prefill_ns);
    const double longest = std::max({predicted, measured ? measured->all_ns : 0.0, 1.0});
    const double scale = (kWidth - kLabel - 2 * kMargin - 90) / longest;
    Label(absl::StrCat(what, ", predicted"));
    double x = kLabel;
    for (const PlacementSegment& s : placement.segments) {
      const auto way = static_cast<double>(decode ? s.decode_transfer_ns : s.prefill_transfer_ns);
      const auto ns = static_cast<double>(decode ? s.decode_ns : s.prefill_ns);
      if (way > 0) Box(x, way * scale, 20, "#bab0ac", "handed on");
      x += way * scale;
      Box(x, ns * scale, 20, Colour(s.range.device),
          absl::StrCat(Name(s.range.device), ": ", TimeText(static_cast<int64_t>(ns))));
      x += ns * scale;
    }
    TextAt(x + 6, y_ + 15, TimeText(static_cast<int64_t>(predicted)));
    y_ += kRow;
    if (measured) Measured(what, *measured, scale);
    y_ += 8;
  }

  void Measured(const std::string& what, const MeasuredPass& pass, double scale) {
    Label(absl::StrCat(what, ", measured"));
    double x = kLabel;
    for (size_t i = 0; i < std::min(pass.segment_ns.size(), Segments().size()); ++i) {
      const size_t device = Segments()[i].range.device;
      Box(x, pass.segment_ns[i] * scale, 20, Colour(device),
          absl::StrCat(Name(device), ": ", TimeText(static_cast<int64_t>(pass.segment_ns[i]))));
      x += pass.segment_ns[i] * scale;
    }
    TextAt(kLabel + pass.all_ns * scale + 6, y_ + 15, TimeText(static_cast<int64_t>(pass.all_ns)));
    y_ += kRow;
  }

  // Draws the used part of each device's memory; without a limit, all of it is used.
  void Memory() {
    for (size_t i = 0; i < problem().devices.size(); ++i) {
      const MemoryUse& use = r_.report.placement.devices[i];
      if (use.used_bytes == 0) continue;
      const uint64_t pool = r_.report.placement.pools[problem().devices[i].pool].available_bytes;
      const uint64_t most = std::min(use.available_bytes, pool);
      const double all = static_cast<double>(most == kNoLimit ? use.used_bytes : most);
      const double width = kWidth - kLabel - 2 * kMargin - 90;
      Label(absl::StrCat(use.name, " memory"));
      Box(kLabel, width, 20, "#eeeeee", "");
      Box(kLabel, width * std::min(static_cast<double>(use.used_bytes) / all, 1.0), 20, Colour(i),
          FormatBytes(use.used_bytes));
      TextAt(kLabel + 6, y_ + 15,
             absl::StrCat(FormatBytes(use.used_bytes), " of ",
                          most == kNoLimit ? "what there is" : FormatBytes(most)));
      y_ += kRow;
    }
  }

  void Moved() {
    for (const MovedWeights& moved : r_.report.moved) {
      Text(kMargin, 20,
           absl::StrCat("of ", DescribeSegment(r_.report.ranges[moved.range]), ", ",
                        FormatBytes(moved.bytes), " on ", moved.device));
    }
    if (!r_.report.moved.empty()) y_ += 10;
  }

  void LeftOut() {
    for (const LeftOutDevice& out : r_.report.placement.left_out) {
      Text(kMargin, 20, DescribeLeftOut(r_.report, out));
    }
    for (const InventoryDevice& device : r_.too_fast) Text(kMargin, 20, DescribeLeftOut(device));
  }

  const PlanReport& r_;
  double y_ = kMargin;
  std::string body_;
};

}  // namespace

std::string FormatPlanPicture(const PlanReport& report) { return Picture(report).Draw(); }

}  // namespace trine
