// How llama.cpp keeps the families whose own files do not say it: a GgufRules each, by groups.
#pragma once

#include <span>

#include "core/model/gguf_rules.h"

namespace assay::families {

using GgufGroup = std::span<const GgufRules* const>;
GgufGroup gguf_dense();  // a file each of that name
GgufGroup gguf_2023();
GgufGroup gguf_phi();
GgufGroup gguf_mixtures();
GgufGroup gguf_recurrent();
GgufGroup gguf_hybrid();
GgufGroup gguf_vision();
GgufGroup gguf_latent();
GgufGroup gguf_latent_own();
GgufGroup gguf_2026();
GgufGroup gguf_hybrid_2026();
GgufGroup gguf_qkv();
GgufGroup gguf_deepseek_v4();
GgufGroup gguf_kimi_k3();
GgufGroup gguf_lightning();
GgufGroup gguf_mixtures_2026();
GgufGroup gguf_windows_2026();
GgufGroup gguf_latent_2026();
GgufGroup gguf_nemotron_nas();
GgufGroup gguf_own_code();

}  // namespace assay::families
