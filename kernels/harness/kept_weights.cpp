#include "kernels/harness/kept_weights.h"

#include <map>
#include <mutex>
#include <string>
#include <tuple>

namespace assay {
namespace {

constexpr std::size_t kMostOfWeights = std::size_t{64} << 20;  // bytes

using Key = std::tuple<std::string, InputKind, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t,
                       int, std::int64_t, int>;

Key key_of(std::string_view form, InputKind kind, const FillOptions& o) {
  return {std::string(form), kind, o.rows, o.columns, o.terms, o.seed, o.digits, o.largest_code, o.halvings};
}

class KeptWeights {
 public:
  MadeWeightPtr find(const Key& key) {
    const std::lock_guard lock(mutex_);
    const auto at = weights_.find(key);
    return at == weights_.end() ? nullptr : at->second;
  }
  void keep(const Key& key, const MadeWeightPtr& weight) {
    const std::size_t bytes =
        weight->view().rows * weight->view().columns * sizeof(float);  // none takes more
    if (bytes > kMostOfWeights / 4) return;
    const std::lock_guard lock(mutex_);
    if (kept_ + bytes > kMostOfWeights) {
      weights_.clear();
      kept_ = 0;
    }
    if (weights_.emplace(key, weight).second) kept_ += bytes;
  }

 private:
  std::mutex mutex_;
  std::map<Key, MadeWeightPtr> weights_;
  std::size_t kept_ = 0;
};

}  // namespace

MadeWeightPtr kept_weight(std::string_view form, InputKind kind, const FillOptions& options) {
  const auto make = [&] { return std::make_shared<const MadeWeight>(weight_form(form), kind, options); };
  if (ShapesOnly::asked()) return make();  // without its numbers
  static KeptWeights kept;
  const Key key = key_of(form, kind, options);
  if (MadeWeightPtr weight = kept.find(key)) return weight;
  MadeWeightPtr weight = make();
  kept.keep(key, weight);
  return weight;
}

}  // namespace assay
