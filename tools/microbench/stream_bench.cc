// Measures what it costs to keep weights in the host's memory and to stream them to a device at
// each run.
//
//   trine-stream-bench PLUGIN [--options TEXT] [--device N] [--count N] [TYPE:KxNxM ...]
//
// For COUNT products of weights of K values and N rows with M columns, prints in milliseconds:
// copying all weights to the device, a run with weights on the device, and runs with weights in
// pinned memory, in imported memory and in read-only pages. `over` is the run with pinned memory
// divided by the longer of copying and computing: 1 if they overlap completely. The outputs must
// have the same bits; exits with 1 if they don't, or if something fails. A tool, not a test.
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "dispatch/exec/segment.h"
#include "plugins/handles.h"
#include "trine/sdk/dtype.h"

namespace trine {
namespace {

struct Case {
  std::string type;
  uint32_t dtype = 0;
  int64_t k = 0, n = 0, m = 0;
};

enum class Keep { kDevice, kPinned, kImported, kFile };

// Pages of host memory, filled once.
class Pages {
 public:
  explicit Pages(uint64_t bytes) : bytes_((bytes + 4095) / 4096 * 4096) {
    data_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data_ == MAP_FAILED) data_ = nullptr;
  }
  ~Pages() {
    if (data_ != nullptr) munmap(data_, bytes_);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  std::byte* data() const { return static_cast<std::byte*>(data_); }
  uint64_t bytes() const { return bytes_; }

 private:
  uint64_t bytes_;
  void* data_ = nullptr;
};

// Fills in values that are small for any type: as 16-bit floats, which scales are, all are below 2.
void Fill(std::byte* data, uint64_t bytes, uint32_t seed) {
  for (uint64_t i = 0; i < bytes; ++i) {
    seed = seed * 1664525u + 1013904223u;
    data[i] = static_cast<std::byte>(seed >> 24 & 0x3b);
  }
}

double BestMs(const std::function<absl::Status()>& run, absl::Status* status) {
  double best = 1e30;
  for (int i = 0; i < 7 && status->ok(); ++i) {  // the first two are warm-up
    const auto begin = std::chrono::steady_clock::now();
    status->Update(run());
    const std::chrono::duration<double, std::milli> ms = std::chrono::steady_clock::now() - begin;
    if (i >= 2) best = std::min(best, ms.count());
  }
  return status->ok() ? best : 0.0;
}

class Bench {
 public:
  Bench(std::shared_ptr<Device> device, const Case& shape, uint32_t count)
      : device_(std::move(device)),
        case_(shape),
        count_(count),
        weight_bytes_(static_cast<uint64_t>(sdk::ValueBytes(case_.dtype, case_.k) * case_.n)),
        slot_bytes_((weight_bytes_ + 4095) / 4096 * 4096) {}

  absl::Status Run() {
    Pages pages(slot_bytes_ * count_);
    if (pages.data() == nullptr) return absl::ResourceExhaustedError("no memory for the weights");
    Fill(pages.data(), pages.bytes(), 1);
    std::map<Keep, double> ms;
    std::vector<std::byte> expected;
    absl::Status status;
    for (const Keep keep : {Keep::kDevice, Keep::kPinned, Keep::kImported, Keep::kFile}) {
      auto made = Make(keep, pages);
      if (keep == Keep::kImported && absl::IsUnimplemented(made.status())) continue;
      if (!made.ok()) return made.status();
      ms[keep] = BestMs([&] { return made->segment->Run({}); }, &status);
      if (!status.ok()) return status;
      std::vector<std::byte> bytes(static_cast<size_t>(4 * case_.n * case_.m));
      status = made->outputs.back().Read(0, bytes.data(), bytes.size());
      if (!status.ok()) return status;
      if (keep == Keep::kDevice) expected = bytes;
      if (bytes != expected) return absl::DataLossError("streamed weights give other bits");
      if (keep == Keep::kPinned) copy_ms_ = CopyMs(*made, &status);
      if (!status.ok()) return status;
    }
    Print(ms);
    return absl::OkStatus();
  }

 private:
  struct Made {
    Buffer weights;
    std::vector<Buffer> outputs;
    std::unique_ptr<Segment> segment;  // destroyed before its buffers
  };

  absl::StatusOr<Buffer> MakeWeights(Keep keep, const Pages& pages) const {
    if (keep == Keep::kImported || keep == Keep::kFile) {
      trine_import_desc desc{};
      desc.struct_size = sizeof(desc);
      desc.memory = TRINE_MEMORY_WEIGHTS;
      desc.flags = keep == Keep::kFile ? TRINE_IMPORT_READ_ONLY : 0;
      desc.host_ptr = pages.data();
      desc.bytes = pages.bytes();
      return Buffer::Import(device_, desc);
    }
    auto buffer = Buffer::Allocate(device_, pages.bytes(),
                                   keep == Keep::kDevice ? TRINE_MEMORY_WEIGHTS : TRINE_MEMORY_IO);
    if (!buffer.ok()) return buffer;
    const absl::Status status = buffer->Write(0, pages.data(), pages.bytes());
    if (!status.ok()) return status;
    return buffer;
  }

  absl::StatusOr<Made> Make(Keep keep, const Pages& pages) const {
    Made made;
    auto weights = MakeWeights(keep, pages);
    if (!weights.ok()) return weights.status();
    made.weights = *std::move(weights);
    OpGraph graph;
    std::vector<SlotMemory> memory;
    const TensorId x = graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {case_.k, case_.m});
    for (uint32_t i = 0; i < count_; ++i) {
      const TensorId w = graph.AddTensor(TRINE_ROLE_CONSTANT, case_.dtype, {case_.k, case_.n});
      const TensorId y = graph.AddTensor(TRINE_ROLE_STATE, TRINE_DTYPE_F32, {case_.n, case_.m});
      graph.AddOp(TRINE_OP_MATMUL, {w, x}, {y});
      auto output = Buffer::Allocate(device_, graph.Bytes(y), TRINE_MEMORY_STATE);
      if (!output.ok()) return output.status();
      memory.push_back({graph.SlotOf(w), made.weights.Span(slot_bytes_ * i, weight_bytes_)});
      memory.push_back({graph.SlotOf(y), output->Span(0, graph.Bytes(y))});
      made.outputs.push_back(*std::move(output));
    }
    graph.Finish();
    auto segment = Segment::Create(device_, std::move(graph), memory);
    if (!segment.ok()) return segment.status();
    made.segment = *std::move(segment);
    std::vector<float> values(static_cast<size_t>(case_.k * case_.m));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 17) - 8.0f;
    absl::Status status = made.segment->Write(x, values.data(), 4 * values.size());
    if (!status.ok()) return status;
    return made;
  }

  // Measures copying all weights from pinned memory to the device's own.
  double CopyMs(const Made& made, absl::Status* status) const {
    const uint64_t bytes = slot_bytes_ * count_;
    const auto target = Buffer::Allocate(device_, bytes, TRINE_MEMORY_WEIGHTS);
    status->Update(target.status());
    if (!status->ok()) return 0.0;
    const trine_copy copy{
        {made.weights.handle(), nullptr, 0}, {target->handle(), nullptr, 0}, bytes};
    trine_copy_args args{};
    args.struct_size = sizeof(args);
    args.n_copies = 1;
    args.copy_stride = sizeof(copy);
    args.copies = &copy;
    args.sync.point_stride = sizeof(trine_point);
    return BestMs([&] { return device_->Copy(args); }, status);
  }

  void Print(const std::map<Keep, double>& ms) const {
    const auto text = [&](Keep keep) {
      const auto found = ms.find(keep);
      if (found == ms.end()) return std::string("refused");
      char buffer[32];
      std::snprintf(buffer, sizeof(buffer), "%.3f", found->second);
      return std::string(buffer);
    };
    const double most = std::max(copy_ms_, ms.at(Keep::kDevice));
    std::printf("%-8s %6lld %6lld %5lld %9.1f %9.3f %9s %9s %9s %9s %6.2f\n", case_.type.c_str(),
                static_cast<long long>(case_.k), static_cast<long long>(case_.n),
                static_cast<long long>(case_.m), static_cast<double>(weight_bytes_ * count_) / 1e6,
                copy_ms_, text(Keep::kDevice).c_str(), text(Keep::kPinned).c_str(),
                text(Keep::kImported).c_str(), text(Keep::kFile).c_str(),
                ms.at(Keep::kPinned) / most);
  }

  std::shared_ptr<Device> device_;
  const Case case_;
  const uint32_t count_;
  const uint64_t weight_bytes_, slot_bytes_;
  double copy_ms_ = 0.0;
};

// Parses "q4_0:4096x14336x512".
bool ParseCase(const std::string& text, Case* out) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return false;
  out->type = text.substr(0, colon);
  long long k = 0, n = 0, m = 0;
  if (std::sscanf(text.c_str() + colon + 1, "%lldx%lldx%lld", &k, &n, &m) != 3) return false;
  out->k = k;
  out->n = n;
  out->m = m;
  for (uint32_t dtype = 1; dtype <= TRINE_DTYPE_MXFP4; ++dtype) {
    const sdk::Dtype* info = sdk::FindDtype(dtype);
    if (info != nullptr && out->type == info->name) out->dtype = dtype;
  }
  return out->dtype != 0 && k > 0 && n > 0 && m > 0 && sdk::ValueBytes(out->dtype, k) > 0;
}

int Usage(const std::string& wrong) {
  std::fprintf(stderr,
               "trine-stream-bench: %s\n"
               "usage: trine-stream-bench PLUGIN [--options TEXT] [--device N] [--count N] "
               "[TYPE:KxNxM ...]\n",
               wrong.c_str());
  return 2;
}

int Main(int argc, char** argv) {
  std::string plugin, options;
  uint32_t index = 0, count = 4;
  std::vector<Case> cases;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg.rfind("--", 0) == 0) {
      if (i + 1 == argc) return Usage(arg + " needs a value");
      const char* value = argv[++i];
      if (arg == "--options") {
        options = value;
      } else if (arg == "--device") {
        index = static_cast<uint32_t>(std::atoi(value));
      } else if (arg == "--count") {
        count = static_cast<uint32_t>(std::max(1, std::atoi(value)));
      } else {
        return Usage("unknown option " + arg);
      }
    } else if (plugin.empty()) {
      plugin = arg;
    } else {
      Case c;
      if (!ParseCase(arg, &c)) return Usage(arg + " is no TYPE:KxNxM");
      cases.push_back(c);
    }
  }
  if (plugin.empty()) return Usage("which plugin?");
  if (cases.empty()) {
    for (const char* text : {"q4_0:4096x14336x1", "q4_0:4096x14336x512", "q4_0:4096x14336x2048",
                             "f16:4096x14336x512"}) {
      Case c;
      (void)ParseCase(text, &c);
      cases.push_back(c);
    }
  }
  const HostServices host({1, {}}, nullptr);
  auto library = PluginLibrary::Load(plugin);
  absl::Status status = library.status();
  if (status.ok()) {
    const auto backend = Backend::Open(std::move(*library), host, options);
    const auto device = backend.ok() ? Device::Open(*backend, index) : backend.status();
    status = device.status();
    std::printf("%-8s %6s %6s %5s %9s %9s %9s %9s %9s %9s %6s\n", "type", "k", "n", "m", "MB",
                "copy", "resident", "pinned", "imported", "pages", "over");
    for (size_t i = 0; i < cases.size() && status.ok(); ++i) {
      status = Bench(*device, cases[i], count).Run();
    }
  }
  if (status.ok()) return 0;
  std::fprintf(stderr, "trine-stream-bench: %s\n", std::string(status.message()).c_str());
  return 1;
}

}  // namespace
}  // namespace trine

int main(int argc, char** argv) { return trine::Main(argc, argv); }
