// The kernels of this folder, for the device at hand or for none.
#pragma once

#include <memory>

namespace assay {

class ModelMemory;
struct ModelDevice;
class Registry;

void add_cuda_kernels(Registry& registry);

// Memory for a model on the device at hand; null where there is none.
std::unique_ptr<ModelMemory> cuda_model_memory();
ModelDevice cuda_model_device();

}  // namespace assay
