// The kernels of this folder, for the device at hand or for none.
#pragma once

namespace assay {

class Registry;

void add_cuda_kernels(Registry& registry);

}  // namespace assay
