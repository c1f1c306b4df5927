#include "plugins/conformance/submission.h"

#include <algorithm>
#include <utility>

#include "plugins/conformance/oracle.h"

namespace trine::conformance {
namespace {

// The probe graph, run once. The false inputs are the true ones, moved by one value.
class PlanRun : public Submission {
 public:
  explicit PlanRun(OpCase probe) : probe_(std::move(probe)) {}

  bool Make(Trial& trial, Session& s) {
    const GraphSpec& graph = probe_.graph;
    Images false_images = probe_.images;
    true_inputs_.resize(probe_.images.size());
    false_inputs_.resize(probe_.images.size());
    for (uint32_t slot = 0; slot < probe_.images.size(); ++slot) {
      if (graph.slots[slot].role != TRINE_ROLE_IO || graph.Writes(slot)) continue;
      Bytes& image = false_images[slot];
      std::rotate(image.begin(), image.begin() + sizeof(float), image.end());
      true_inputs_[slot] = probe_.images[slot];
      false_inputs_[slot] = image;
    }
    of_true_ = probe_.images;
    RunOracle(graph, probe_.params, &of_true_);
    RunOracle(graph, probe_.params, &false_images);
    // What was read is told by the outputs alone.
    of_false_ = of_true_;
    for (uint32_t slot = 0; slot < probe_.images.size(); ++slot) {
      if (graph.Writes(slot)) of_false_[slot] = false_images[slot];
    }
    plan_ = DevicePlan::Create(trial, s, graph, probe_.images);
    return plan_ != nullptr;
  }

  const char* call() const override { return "plan_run"; }
  Answer Submit(Trial& trial, const RunOptions& options) override {
    return plan_->Run(trial, probe_.params, options);
  }
  bool WriteInputs(Trial& trial, bool true_ones) override {
    return plan_->Upload(trial, true_ones ? true_inputs_ : false_inputs_);
  }
  Result Look(Trial& trial) override {
    Images got;
    if (!plan_->Download(trial, &got)) return Result::kNeither;
    if (got == probe_.images) return Result::kNone;
    const auto holds = [&](const Images& expected) {
      return CompareImages(probe_.graph, probe_.params, expected, got,
                           probe_.graph.numerics == TRINE_NUMERICS_EXACT)
          .empty();
    };
    return holds(of_true_)    ? Result::kOfTrueInputs
           : holds(of_false_) ? Result::kOfFalseInputs
                              : Result::kNeither;
  }

 private:
  OpCase probe_;
  Images true_inputs_, false_inputs_;  // of other slots: empty
  Images of_true_, of_false_;
  std::unique_ptr<DevicePlan> plan_;
};

// One buffer copied to another.
class BufferCopy : public Submission {
 public:
  static constexpr size_t kBytes = 4096;

  explicit BufferCopy(Session& s) : s_(s) {}

  bool Make(Trial& trial) {
    from_ = s_.Alloc(trial, kBytes);
    to_ = s_.Alloc(trial, kBytes);
    return from_ != nullptr && to_ != nullptr && WriteInputs(trial, true) &&
           trial.ExpectOk(s_.Write(trial, to_.get(), 0, Bytes(kBytes, kGarbage).data(), kBytes),
                          "buffer_write");
  }

  const char* call() const override { return "copy_run"; }
  Answer Submit(Trial& trial, const RunOptions& options) override {
    const Bytes waits = Spread(options.waits, options.padding);
    const Bytes signals = Spread(options.signals, options.padding);
    const trine_copy copy{{from_.get(), nullptr, 0}, {to_.get(), nullptr, 0}, kBytes};
    trine_copy_args args{};
    args.struct_size = sizeof(args);
    args.n_copies = 1;
    args.copy_stride = sizeof(copy);
    args.copies = &copy;
    args.sync.n_waits = static_cast<uint32_t>(options.waits.size());
    args.sync.n_signals = static_cast<uint32_t>(options.signals.size());
    args.sync.point_stride = static_cast<uint32_t>(sizeof(trine_point) + options.padding);
    args.sync.waits = reinterpret_cast<const trine_point*>(waits.data());
    args.sync.signals = reinterpret_cast<const trine_point*>(signals.data());
    return trial.Call(
        "copy_run", [&](trine_error* err) { return s_.table().copy_run(s_.device(), &args, err); });
  }
  bool WriteInputs(Trial& trial, bool true_ones) override {
    return trial.ExpectOk(s_.Write(trial, from_.get(), 0, Input(true_ones).data(), kBytes),
                          "buffer_write");
  }
  Result Look(Trial& trial) override {
    Bytes got(kBytes);
    trial.ExpectOk(s_.Read(trial, to_.get(), 0, got.data(), kBytes), "buffer_read");
    return got == Input(true)               ? Result::kOfTrueInputs
           : got == Input(false)            ? Result::kOfFalseInputs
           : got == Bytes(kBytes, kGarbage) ? Result::kNone
                                            : Result::kNeither;
  }

 private:
  static Bytes Input(bool true_ones) {
    return Bytes(kBytes, true_ones ? std::byte{0x11} : std::byte{0xEE});
  }

  Session& s_;
  BufferPtr from_, to_;
};

}  // namespace

std::unique_ptr<Submission> Submission::OfPlan(Trial& trial, Bench& bench, Session& s) {
  std::optional<OpCase> probe = bench.Probe(trial, s);
  if (!probe) return nullptr;
  auto run = std::make_unique<PlanRun>(std::move(*probe));
  return run->Make(trial, s) ? std::move(run) : nullptr;
}

std::unique_ptr<Submission> Submission::OfCopy(Trial& trial, Bench&, Session& s) {
  auto copy = std::make_unique<BufferCopy>(s);
  return copy->Make(trial) ? std::move(copy) : nullptr;
}

}  // namespace trine::conformance
