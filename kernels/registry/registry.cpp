#include "kernels/registry/registry.h"

namespace assay {

std::string_view name(Device device) {
  return device == Device::cpu ? "cpu" : "cuda";
}

std::string_view kernel_group(std::string_view kernel_name) {
  return kernel_name.substr(0, kernel_name.find('.'));
}

}  // namespace assay
