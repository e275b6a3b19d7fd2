#include "kernels/dumps/dump.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <tuple>

#include "core/system/error.h"
#include "core/system/text.h"

namespace assay::dumps {
namespace {

// Two joined tensors of all their axes but `axis`.
bool joinable(const Shape& a, const Shape& b, std::size_t axis) {
  if (a.size() != b.size() || axis >= a.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (i != axis && a[i] != b[i]) return false;
  }
  return true;
}

// The joined axis by its name or number.
std::size_t axis_number(const Join& join, const TapLayout& layout, std::size_t axes) {
  const auto it = std::find(layout.axes.begin(), layout.axes.end(), join.axis);
  if (it != layout.axes.end()) return static_cast<std::size_t>(it - layout.axes.begin());
  const bool from_end = join.axis.starts_with('-');
  const auto number = parse_u64(std::string_view(join.axis).substr(from_end ? 1 : 0));
  if (!number || (from_end ? *number == 0 || *number > axes : *number >= axes))
    throw Error::input(fmt::format("the map joins along axis {} of a tensor of {} axes",
                                   escape_for_terminal(join.axis), axes));
  return from_end ? axes - *number : *number;
}

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0);
}

}  // namespace

bool Tap::is_float() const {
  return info(type).is_float || type == ElementType::C64;
}

std::string describe(const JoinPlan& plan, std::size_t ranks) {
  switch (plan.kind) {
    case Join::Kind::same: return fmt::format("{} ranks hold the same", ranks);
    case Join::Kind::sum: return fmt::format("{} ranks summed", ranks);
    case Join::Kind::concat: return fmt::format("{} ranks joined along axis {}", ranks, plan.axis);
    case Join::Kind::automatic: break;
  }
  return "";
}

Dump::Dump(const fs::path& path, const std::vector<MapRule>& rules) : files_(path) {
  // Of one name, place by place: several where a pass came by several times.
  std::map<std::string, Named> named;
  const std::vector<Piece>& pieces = files_.pieces();
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto mapped = mapped_name(rules, pieces[i].name);
    if (!mapped) {
      ++dropped_;
      continue;
    }
    Place place = pieces[i].place;
    place.occurrence = 0;
    Named& entry = named[mapped->name];
    entry.layout = mapped->layout;
    entry.at[place].push_back(i);
  }
  for (auto& [name, entry] : named) add_taps(name, entry);
  std::sort(taps_.begin(), taps_.end(), [](const Tap& a, const Tap& b) { return a.key < b.key; });
}

// One tap for each time that a pass came by: "name", "name#2" …
void Dump::add_taps(const std::string& name, Named& entry) {
  const std::vector<Piece>& pieces = files_.pieces();
  using Step =
      std::tuple<std::optional<std::uint64_t>, std::optional<std::uint64_t>, std::optional<std::uint64_t>>;
  std::vector<std::map<Step, std::vector<std::size_t>>> times;
  for (auto& [place, at] : entry.at) {
    std::sort(at.begin(), at.end(), [&](std::size_t a, std::size_t b) {
      return pieces[a].place.occurrence < pieces[b].place.occurrence;
    });
    for (std::size_t n = 0; n < at.size(); ++n) {
      if (n > 0 && pieces[at[n]].place.occurrence == pieces[at[n - 1]].place.occurrence) {
        throw Error::input(fmt::format("the map calls two tensors so: {} and {}",
                                       escape_for_terminal(pieces[at[n - 1]].name),
                                       escape_for_terminal(pieces[at[n]].name)))
            .in(files_.path())
            .tensor(name);
      }
      if (times.size() == n) times.emplace_back();
      times[n][{place.step, place.dp, place.cp}].push_back(at[n]);
    }
  }
  for (std::size_t n = 0; n < times.size(); ++n) {
    Tap tap;
    tap.name = n == 0 ? name : fmt::format("{}#{}", name, n + 1);
    tap.key = forward_key(tap.name);
    tap.layout = entry.layout;
    for (auto& [step, ranks] : times[n]) tap.steps.push_back(std::move(ranks));
    tap.type = pieces[tap.steps.front().front()].type;
    taps_.push_back(std::move(tap));
  }
}

const Tap* Dump::find(std::string_view name) const {
  const auto it = std::find_if(taps_.begin(), taps_.end(), [&](const Tap& tap) { return tap.name == name; });
  return it == taps_.end() ? nullptr : &*it;
}

Shape Dump::shape_of(const Tap& tap, std::size_t piece) const {
  Shape shape = files_.pieces()[piece].shape;
  if (files_.pieces()[piece].type == ElementType::C64) shape.push_back(2);
  if (tap.layout.transpose.empty()) return shape;
  if (tap.layout.transpose.size() != shape.size())
    throw Error::input(fmt::format("the map transposes {} axes of a tensor that has {}",
                                   tap.layout.transpose.size(), shape.size()))
        .tensor(tap.name);
  return permuted(shape, tap.layout.transpose);
}

std::vector<JoinPlan> Dump::joins(const Tap& tap) const {
  std::vector<JoinPlan> plans;
  const auto add = [&](Join::Kind kind, std::size_t axis) {
    JoinPlan plan = {kind, axis, {}};
    for (const std::vector<std::size_t>& ranks : tap.steps) {
      Shape shape = shape_of(tap, ranks.front());
      for (std::size_t r = 1; r < ranks.size(); ++r) {
        const Shape part = shape_of(tap, ranks[r]);
        if (kind != Join::Kind::concat && part != shape) return;
        if (kind != Join::Kind::concat) continue;
        if (!joinable(shape, part, axis)) return;
        shape[axis] += part[axis];
      }
      plan.steps.push_back(std::move(shape));
    }
    plans.push_back(std::move(plan));
  };
  const std::size_t axes = shape_of(tap, tap.steps.front().front()).size();
  const bool alone =
      std::all_of(tap.steps.begin(), tap.steps.end(), [](const auto& r) { return r.size() == 1; });
  const Join& asked = tap.layout.join;
  if (alone || asked.kind == Join::Kind::same) {
    add(Join::Kind::same, 0);
  } else if (asked.kind == Join::Kind::sum) {
    add(Join::Kind::sum, 0);
  } else if (asked.kind == Join::Kind::concat) {
    add(Join::Kind::concat, axis_number(asked, tap.layout, axes));
  } else {
    add(Join::Kind::same, 0);
    for (std::size_t axis = axes; axis-- > 0;) add(Join::Kind::concat, axis);
  }
  if (plans.empty())
    throw Error::input("the parts that the ranks hold do not fit together")
        .tensor(tap.name)
        .remedy("say how in the map file: join=same, sum or concat:AXIS");
  return plans;
}

std::vector<double> Dump::read(const Tap& tap, std::size_t piece) const {
  std::vector<double> values = files_.read(files_.pieces()[piece]);
  if (tap.layout.transpose.empty()) return values;
  Shape shape = files_.pieces()[piece].shape;
  if (files_.pieces()[piece].type == ElementType::C64) shape.push_back(2);
  return permuted(values, shape, tap.layout.transpose);
}

std::vector<double> Dump::joined(const Tap& tap, const JoinPlan& join, std::size_t step) const {
  const std::vector<std::size_t>& ranks = tap.steps[step];
  std::vector<double> whole = read(tap, ranks.front());
  if (ranks.size() == 1) return whole;
  if (join.kind != Join::Kind::concat) {
    for (std::size_t r = 1; r < ranks.size(); ++r) {
      const std::vector<double> part = read(tap, ranks[r]);
      if (join.kind == Join::Kind::sum) {
        for (std::size_t i = 0; i < whole.size(); ++i) whole[i] += part[i];
      } else if (!same_bits(whole, part)) {
        const std::string place = describe(files_.pieces()[ranks[r]].place);
        throw Error::input(fmt::format("the ranks hold different numbers, first at {}", place))
            .tensor(tap.name)
            .remedy(
                "if they are parts of a sum or of a longer axis, say so in the map file: join=sum, "
                "join=concat:AXIS");
      }
    }
    return whole;
  }
  // Each part is `outer` blocks of its own axis times `inner`.
  const Shape& shape = join.steps[step];
  std::size_t outer = 1, inner = 1;
  for (std::size_t a = 0; a < shape.size(); ++a)
    (a < join.axis ? outer : inner) *= a == join.axis ? 1 : shape[a];
  std::vector<double> result(outer * inner * shape[join.axis]);
  std::size_t column = 0;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const std::vector<double> part = r == 0 ? std::exchange(whole, {}) : read(tap, ranks[r]);
    const std::size_t block = shape_of(tap, ranks[r])[join.axis] * inner;
    for (std::size_t o = 0; o < outer; ++o)
      std::copy_n(part.begin() + static_cast<std::ptrdiff_t>(o * block), block,
                  result.begin() + static_cast<std::ptrdiff_t>(o * inner * shape[join.axis] + column));
    column += block;
  }
  return result;
}

Activations Dump::load(const Tap& tap, const JoinPlan& join, const AxisPlan& axes) const {
  Activations all;
  all.type = tap.type;
  const auto whole = extent(join.steps, axes);
  if (!whole) throw Error::internal("a tap of steps that do not fit");
  all.rows = whole->rows;
  all.width = whole->width;
  for (std::size_t step = 0; step < tap.steps.size(); ++step) {
    std::vector<double> values = permuted(joined(tap, join, step), join.steps[step], axes.order);
    if (step == 0)
      all.values = std::move(values);
    else
      all.values.insert(all.values.end(), values.begin(), values.end());
  }
  const TapLayout& layout = tap.layout;
  for (const std::size_t head : {layout.pairs_to_halves, layout.halves_to_pairs}) {
    if (head != 0 && all.width % head != 0)
      throw Error::input(fmt::format("the map has heads of {} in rows of {}", head, all.width))
          .tensor(tap.name);
  }
  for (std::size_t i = 0; i < all.rows; ++i) {
    double* row = all.values.data() + i * all.width;
    if (layout.pairs_to_halves != 0) pairs_to_halves(row, all.width, layout.pairs_to_halves);
    if (layout.halves_to_pairs != 0) halves_to_pairs(row, all.width, layout.halves_to_pairs);
  }
  if (layout.scale != 1) {
    for (double& value : all.values) value *= layout.scale;
  }
  return all;
}

std::uint64_t Dump::bytes(const Tap& tap) const {
  std::uint64_t elements = 0;
  for (const auto& ranks : tap.steps) {
    for (const std::size_t piece : ranks) elements += element_count(files_.pieces()[piece].shape).value_or(0);
  }
  return elements * sizeof(double);
}

void pairs_to_halves(double* row, std::size_t width, std::size_t head) {
  std::vector<double> turned(head);
  for (std::size_t at = 0; at < width; at += head) {
    for (std::size_t i = 0; i < head / 2; ++i) {
      turned[i] = row[at + 2 * i];
      turned[head / 2 + i] = row[at + 2 * i + 1];
    }
    std::copy(turned.begin(), turned.end(), row + at);
  }
}

void halves_to_pairs(double* row, std::size_t width, std::size_t head) {
  std::vector<double> turned(head);
  for (std::size_t at = 0; at < width; at += head) {
    for (std::size_t i = 0; i < head / 2; ++i) {
      turned[2 * i] = row[at + i];
      turned[2 * i + 1] = row[at + head / 2 + i];
    }
    std::copy(turned.begin(), turned.end(), row + at);
  }
}

}  // namespace assay::dumps
