// Compressed caches by name (docs/caches.md): what each promises, and its authors' rule.
//
//   fp8[:scale=tensor|head,recent=N]                codes of 8 bits, one scale a tensor or a head
//   int8[:recent=N]                                 codes of 8 bits, one scale a token and head
//   kivi2, kivi4[:residual=N,group=N,keys=…]        keys by channel, values by token, the newest in full
//   streaming[:sinks=N,window=N]                    the first tokens and the newest, renumbered
//   h2o[:budget=N,recent=N]                         those that got most attention, and the newest
//   snapkv[:budget=N,window=N,kernel=N,pool=…]      those that the end of the prompt voted for
//   pyramidkv[:…,beta=N]                            likewise, fewer the deeper the layer
//   grouped[:every=N,window=N,share=N]              the model's own layers look back a window, or share keys and values
//
// N may be `all`: then nothing is lost, and the cache is the full one, bit for bit.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "refimpl/models/model.h"
#include "refimpl/step/cache_policy.h"

namespace assay {

// Throws Error::usage, which names what is wrong with the text.
std::shared_ptr<const CacheMethod> cache_method(std::string_view text);

// What a method is by itself, and with a budget that a text of `tokens` tokens does not fill.
struct CacheMethodName {
  std::string_view name, what, everything;  // "h2o", …, "h2o:budget=all"
};
std::span<const CacheMethodName> cache_method_names();

// Throws Error::input, in a line, where the method makes no sense for the model. Returns how many layers it cuts, of
// how many that have rows.
struct CutLayers {
  std::size_t cut = 0, layers = 0;
};
CutLayers require_suitable(const CacheMethod& method, const LanguageModel& model);

// How a row is read depends on nothing but itself, so that texts may share rows, and forget the last ones: blocks of a
// pool take such a method (int8).
bool rounds_single_rows(const CacheMethod& method);
// Throws Error::input, in a line, where texts that are served together cannot be kept so.
void require_servable(const CacheMethod& method);

}  // namespace assay
