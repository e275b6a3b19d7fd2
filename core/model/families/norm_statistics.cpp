#include "core/model/families/norm_statistics.h"

#include "core/model/blocks.h"

namespace assay::families {

void add_norm_statistics(Module& module, const std::string& norm, std::uint64_t width) {
  for (const char* seen : {".running_mean", ".running_var"}) blocks::add_buffer(module, norm + seen, {width});
  blocks::add_buffer(module, norm + ".num_batches_tracked", {});
}

}  // namespace assay::families
