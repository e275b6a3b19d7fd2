// How each method is made of its options: private to this folder.
#pragma once

#include <memory>

#include "refimpl/caches/method_text.h"
#include "refimpl/step/cache_policy.h"

namespace assay {

using MadeCacheMethod = std::shared_ptr<const CacheMethod>;

MadeCacheMethod make_fp8_cache(MethodText& text);
MadeCacheMethod make_int8_cache(MethodText& text);
MadeCacheMethod make_kivi_cache(MethodText& text, int bits);
MadeCacheMethod make_streaming_cache(MethodText& text);
MadeCacheMethod make_heavy_hitter_cache(MethodText& text);
MadeCacheMethod make_grouped_layers(MethodText& text);
MadeCacheMethod make_snap_cache(MethodText& text, bool pyramid);

}  // namespace assay
