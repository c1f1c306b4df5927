// Which weights of a segment lie in a layout of the device's own.
#ifndef TRINE_RUNTIME_MODEL_LAYOUT_CHOICE_H_
#define TRINE_RUNTIME_MODEL_LAYOUT_CHOICE_H_

#include <functional>
#include <string>

#include "plugins/handles.h"
#include "runtime/model/segment_graph.h"

namespace trine {

// Gives each matrix the best layout of the device's that all ops which read it take, exactly; where
// there is none it stays plain. A weight that several tensors of the graph stand for (a tied
// embedding) gets one layout for all of them, or else those that are multiplied with get it and the
// others stay plain, as weights do of which rows are only picked. `warn` hears of a device that
// breaks the rules.
void ChooseLayouts(const Device& device, SegmentGraph* segment,
                   const std::function<void(const std::string&)>& warn);

// All weights plain again.
void ClearLayouts(SegmentGraph* segment);

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_LAYOUT_CHOICE_H_
