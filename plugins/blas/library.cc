#include "library.h"

namespace blas {

#ifndef BLAS_WITH_CBLAS
const Library* Cblas() { return nullptr; }
#endif
#ifndef BLAS_WITH_ONEDNN
const Library* OneDnn() { return nullptr; }
#endif

const Library* ChooseLibrary(std::string_view name) {
  if (name == "cblas") return Cblas();
  if (name == "onednn") return OneDnn();
  if (!name.empty()) return nullptr;
  // oneDNN makes code for the instructions that the processor has. OpenBLAS takes code for an old
  // processor where it does not know a new one's name, which takes ten times as long.
  const bool use_onednn = OneDnn() != nullptr && OneDnn()->KnowsProcessor();
  return use_onednn || Cblas() == nullptr ? OneDnn() : Cblas();
}

}  // namespace blas
