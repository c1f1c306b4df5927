// trine-embed-shader NAME exact|fast IN.spv OUT.cc, a step of the build: checks the arithmetic of
// an exact shader against the contract, and writes it as C++ source with what it reads and writes.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <vector>

#include "kernels/vulkan/spirv/spirv_module.h"

namespace trine::vulkan {
namespace {

bool ReadWords(const char* path, std::vector<uint32_t>* words) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in || in.tellg() % 4 != 0) return false;
  words->resize(static_cast<size_t>(in.tellg()) / 4);
  in.seekg(0);
  return static_cast<bool>(in.read(reinterpret_cast<char*>(words->data()),
                                   static_cast<std::streamsize>(words->size() * 4)));
}

void WriteList(std::ofstream& out, const char* name, const std::vector<uint32_t>& words) {
  out << "constexpr uint32_t " << name << "[] = {";
  for (size_t i = 0; i < words.size(); ++i) out << (i % 12 == 0 ? "\n" : "") << words[i] << "u,";
  out << "\n};\n";
}

bool WriteSource(const char* path, const char* name, bool exact, const SpirvModule& module) {
  std::ofstream out(path);
  const SpirvInterface& interface = module.interface();
  out << "#include \"kernels/vulkan/spirv/shaders.h\"\nnamespace trine::vulkan {\nnamespace {\n"
      << "namespace " << name << "_code {\n";  // several shaders are compiled as one unit
  WriteList(out, "kWords", module.words());
  WriteList(out, "kCapabilities", interface.capabilities);
  out << "}  // namespace " << name << "_code\n}  // namespace\nconst Shader shaders::" << name
      << " = {\"" << name << "\", " << name << "_code::kWords, " << module.words().size() << ", "
      << HashWords(module.words()) << "u, " << interface.binding_count << ", " << interface.reads
      << ", " << interface.writes << ", " << interface.push_bytes << ", " << name
      << "_code::kCapabilities, " << interface.capabilities.size() << ", "
      << (exact ? "true" : "false") << "};\n}  // namespace trine::vulkan\n";
  out.close();
  return static_cast<bool>(out);
}

int Main(const char* name, bool exact, const char* in, const char* out) {
  std::vector<uint32_t> words;
  if (!ReadWords(in, &words)) {
    std::fprintf(stderr, "%s: can't be read\n", in);
    return 1;
  }
  const SpirvModule module(std::move(words));
  if (!module.error().empty()) {
    std::fprintf(stderr, "%s: %s\n", name, module.error().c_str());
    return 1;
  }
  bool failed = false;
  for (const std::string& use : exact ? module.InexactUses() : std::vector<std::string>{}) {
    std::fprintf(stderr, "%s: not exact: %s\n", name, use.c_str());
    failed = true;
  }
  if (failed) return 1;
  if (!WriteSource(out, name, exact, module)) {
    std::fprintf(stderr, "%s: can't be written\n", out);
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace trine::vulkan

int main(int argc, char** argv) {
  const bool exact = argc == 5 && std::strcmp(argv[2], "exact") == 0;
  if (argc != 5 || (!exact && std::strcmp(argv[2], "fast") != 0)) {
    std::fprintf(stderr, "usage: trine-embed-shader NAME exact|fast IN.spv OUT.cc\n");
    return 2;
  }
  return trine::vulkan::Main(argv[1], exact, argv[3], argv[4]);
}
