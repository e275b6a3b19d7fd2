#include "core/model/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/system/error.h"

namespace assay {
namespace {

Error overflow(const Quantity& a, char operation, const Quantity& b) {
  return Error::input(fmt::format("{} {} {} does not fit in 64 bits: the sizes in the config cannot be real",
                                  a.value(), operation == '*' ? "×" : "+", b.value()));
}

bool is_bare_one(const Quantity& q) {
  return q.kind() == Quantity::Kind::number && q.value() == 1 && q.name().empty();
}

// Two products are like terms when they have the same factors, in whatever order.
std::string likeness(const Quantity& term) {
  if (term.kind() != Quantity::Kind::product) return term.numbers() + "|" + term.symbols();
  std::vector<std::string> factors;
  for (const Quantity& part : term.parts()) factors.push_back(likeness(part));
  std::sort(factors.begin(), factors.end());
  return fmt::format("{}", fmt::join(factors, "*"));
}

}  // namespace

Quantity Quantity::join(Kind kind, const Quantity& a, const Quantity& b, std::uint64_t value) {
  Quantity joined(value);
  joined.kind_ = kind;
  for (const Quantity* side : {&a, &b}) {
    if (side->kind_ == kind)
      joined.parts_.insert(joined.parts_.end(), side->parts_.begin(), side->parts_.end());
    else
      joined.parts_.push_back(*side);
  }
  return joined;
}

Quantity operator+(const Quantity& a, const Quantity& b) {
  std::uint64_t value = 0;
  if (__builtin_add_overflow(a.value_, b.value_, &value)) throw overflow(a, '+', b);
  return Quantity::join(Quantity::Kind::sum, a, b, value);
}

Quantity operator*(const Quantity& a, const Quantity& b) {
  std::uint64_t value = 0;
  if (__builtin_mul_overflow(a.value_, b.value_, &value)) throw overflow(a, '*', b);
  if (is_bare_one(a)) return b;
  if (is_bare_one(b)) return a;
  return Quantity::join(Quantity::Kind::product, a, b, value);
}

std::string Quantity::numbers() const {
  return write(false);
}
std::string Quantity::symbols() const {
  return write(true);
}

std::string Quantity::write(bool symbols) const {
  if (kind_ == Kind::number) return symbols && !name_.empty() ? name_ : std::to_string(value_);
  std::string text;
  for (const Quantity& part : parts_) {
    if (!text.empty()) text += kind_ == Kind::sum ? " + " : " × ";
    const bool bracket = kind_ == Kind::product && part.kind_ == Kind::sum;
    text += bracket ? "(" + part.write(symbols) + ")" : part.write(symbols);
  }
  return text;
}

Quantity gathered_sum(std::span<const Quantity> terms) {
  struct Like {
    std::string key;
    const Quantity* term;
    std::uint64_t times;
  };
  std::vector<Like> likes;
  for (const Quantity& term : terms) {
    std::string key = likeness(term);
    const auto found = std::find_if(likes.begin(), likes.end(), [&](const Like& l) { return l.key == key; });
    if (found != likes.end())
      ++found->times;
    else
      likes.push_back({std::move(key), &term, 1});
  }
  if (likes.empty()) return {0};
  Quantity sum = Quantity(likes[0].times) * *likes[0].term;
  for (std::size_t i = 1; i < likes.size(); ++i) sum = sum + Quantity(likes[i].times) * *likes[i].term;
  return sum;
}

}  // namespace assay
