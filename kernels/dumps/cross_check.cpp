#include "kernels/dumps/cross_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "core/system/text.h"

namespace assay::dumps {
namespace {

constexpr std::size_t kSampled = 1024;
constexpr std::size_t kTooFew = 8;

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double error = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = static_cast<double>(a[i]) - b[i];
    error += difference * difference;
    size += static_cast<double>(b[i]) * b[i];
    if (i == 63 && error > 0.5 * size) break;  // hopeless
  }
  if (!(size > 0) || std::isnan(error)) return std::numeric_limits<double>::infinity();
  return std::sqrt(error / size);
}

class CrossCheck {
 public:
  explicit CrossCheck(const std::vector<TapSample>& samples) : samples_(samples), found_(samples.size()) {
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if (samples[i].telling && samples[i].ref.size() >= kTooFew)
        alike_[{samples[i].rows, samples[i].width}].push_back(i);
    }
  }

  std::vector<std::optional<Diagnosis>> run() {
    std::vector<std::optional<std::size_t>> is(samples_.size());
    for (const auto& [size, members] : alike_) {
      for (const std::size_t i : members) {
        if (samples_[i].failed) is[i] = resembles(i, members);
      }
    }
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      if (is[i]) name_it(i, *is[i], is);
    }
    for (const auto& [size, members] : alike_) find_aliases(members);
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      if (is[i] && before_the_layers(i, *is[i])) found_[i] = layers_off("0 holds the embedding", 1);
    }
    return std::move(found_);
  }

 private:
  // The tap of REF that TEST's tap i equals; nullopt: none, or its own.
  std::optional<std::size_t> resembles(std::size_t i, const std::vector<std::size_t>& members) const {
    const double own = distance(samples_[i].test, samples_[i].ref);
    double least = believable(own, samples_[i].allowed);
    std::optional<std::size_t> best;
    for (const std::size_t other : members) {
      if (other == i) continue;
      const double d = distance(samples_[i].test, samples_[other].ref);
      if (!(d <= least) || (best && !(d < least))) continue;
      least = d;
      best = other;
    }
    return best;
  }

  void name_it(std::size_t i, std::size_t is, const std::vector<std::optional<std::size_t>>& all) {
    const std::string own = escape_for_terminal(samples_[i].name),
                      other = escape_for_terminal(samples_[is].name);
    if (all[is] == i) {
      found_[i] = {"swapped", fmt::format("it holds REF's {}, and {} holds this: swapped", other, other),
                   "two names, or two arguments, exchanged", 0};
      return;
    }
    const auto layer = layer_of(samples_[i].name), its = layer_of(samples_[is].name);
    if (layer && its && kind_of(samples_[i].name) == kind_of(samples_[is].name)) {
      const auto by = static_cast<std::int64_t>(*layer) - static_cast<std::int64_t>(*its);
      found_[i] = layers_off(fmt::format("{} is REF's layer {}", *layer, *its), by);
      return;
    }
    found_[i] = {"mistagged", fmt::format("it holds what REF calls {}", other),
                 "correct the name, or the map file", 0};
  }

  static Diagnosis layers_off(const std::string& what, std::int64_t by) {
    return {"layers_off", fmt::format("TEST's layer {}: numbered {:+d} off", what, by),
            "hidden_states[0] is the embedding, hidden_states[i + 1] what layer i gives", 0};
  }

  // The first of a kind whose other layers are all one too far down.
  bool before_the_layers(std::size_t i, std::size_t is) const {
    if (forward_key(samples_[is].name).stage != 0 || layer_of(samples_[i].name) != 0) return false;
    const std::string kind = kind_of(samples_[i].name);
    for (std::size_t other = 0; other < samples_.size(); ++other) {
      if (found_[other] && found_[other]->code == "layers_off" && kind_of(samples_[other].name) == kind)
        return true;
    }
    return false;
  }

  void find_aliases(const std::vector<std::size_t>& members) {
    std::map<std::vector<float>, std::size_t> seen;
    for (const std::size_t i : members) {
      const auto [it, fresh] = seen.try_emplace(samples_[i].test, i);
      if (fresh) continue;
      const TapSample &first = samples_[it->second], &second = samples_[i];
      const double apart = distance(second.ref, first.ref);
      if (!(apart > std::max(0.02, 6 * second.allowed))) continue;
      const bool second_wrong = distance(second.test, second.ref) > distance(first.test, first.ref);
      const std::size_t wrong = second_wrong ? i : it->second;
      const TapSample& other = second_wrong ? first : second;
      found_[wrong] = {"aliased",
                       fmt::format("it repeats {} of the same dump to the bit, which REF's does not",
                                   escape_for_terminal(other.name)),
                       "a hook kept a buffer that is written again: keep a copy (.clone()); or what lies "
                       "between was not computed",
                       0};
    }
  }

  const std::vector<TapSample>& samples_;
  std::vector<std::optional<Diagnosis>> found_;
  std::map<std::tuple<std::size_t, std::size_t>, std::vector<std::size_t>> alike_;
};

}  // namespace

TapSample sample(std::string name, const Activations& ref, const Activations& test) {
  TapSample s;
  s.name = std::move(name);
  s.rows = ref.rows;
  s.width = ref.width;
  const std::size_t all = ref.values.size(), count = std::min(all, kSampled);
  for (std::size_t k = 0; k < count; ++k) {
    // Spread over the whole tensor; the odd step keeps it from falling into one column.
    const std::size_t at =
        count == all ? k
                     : static_cast<std::size_t>((static_cast<double>(k) + 0.5) * static_cast<double>(all) /
                                                static_cast<double>(count));
    s.ref.push_back(static_cast<float>(ref.values[at]));
    s.test.push_back(static_cast<float>(test.values[at]));
  }
  return s;
}

std::vector<std::optional<Diagnosis>> cross_check(const std::vector<TapSample>& samples) {
  return CrossCheck(samples).run();
}

}  // namespace assay::dumps
