#include "core/formats/safetensors.h"
