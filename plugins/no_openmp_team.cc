// What takes the place of openmp_team.cc in a build without OpenMP.
#include "plugins/openmp_team.h"

namespace trine {

bool OpenMpTeam::IsBuilt() { return false; }

absl::StatusOr<std::shared_ptr<ThreadTeam>> OpenMpTeam::Create(uint32_t) {
  return absl::UnimplementedError(
      "this build has no OpenMP: its compiler had none, or it was told to leave it out "
      "(-DTRINE_WITH_OPENMP=OFF)");
}

}  // namespace trine
