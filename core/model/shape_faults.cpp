#include "core/model/shape_faults.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/model/reconcile_layers.h"
#include "core/model/stored_checks.h"

namespace assay {
namespace {

// The named numbers that a quantity is made of.
void append_numbers(const Quantity& quantity, std::map<std::string, Quantity>& numbers) {
  if (quantity.kind() == Quantity::Kind::number && !quantity.name().empty())
    numbers.emplace(quantity.name(), quantity);
  for (const Quantity& part : quantity.parts()) append_numbers(part, numbers);
}

// What it would be were `number` another; nullopt beyond 64 bits.
std::optional<std::uint64_t> value_with(const Quantity& quantity, const std::string& number,
                                        std::uint64_t other) {
  if (quantity.kind() == Quantity::Kind::number) return quantity.name() == number ? other : quantity.value();
  const bool sum = quantity.kind() == Quantity::Kind::sum;
  std::uint64_t value = sum ? 0 : 1;
  for (const Quantity& part : quantity.parts()) {
    const auto one = value_with(part, number, other);
    if (!one ||
        (sum ? __builtin_add_overflow(value, *one, &value) : __builtin_mul_overflow(value, *one, &value)))
      return std::nullopt;
  }
  return value;
}

// The value of `number` that makes `quantity` so many elements, where it is a + b · number.
std::optional<std::uint64_t> value_for(const Quantity& quantity, const std::string& number,
                                       std::uint64_t elements) {
  const auto at_one = value_with(quantity, number, 1), at_two = value_with(quantity, number, 2);
  if (!at_one || !at_two || *at_two <= *at_one || elements < *at_one) return std::nullopt;
  const std::uint64_t slope = *at_two - *at_one, above = elements - *at_one;
  if (above % slope != 0) return std::nullopt;
  return 1 + above / slope;
}

}  // namespace

void ShapeFaults::take(const CheckpointTensor& tensor, const Shape& asked, const TensorSpec& spec,
                       const std::string& kind, std::optional<std::uint64_t> layer) {
  const auto [at, is_new] = kinds_.emplace(std::tuple(kind, tensor.type, tensor.shape, asked), kinds_.size());
  if (is_new) {
    faults_.push_back({&tensor, spec.elements, asked, {}, {}});
    if (element_count(asked) == spec.elements.value()) faults_.back().symbols = spec.elements.symbols();
  }
  if (layer) faults_[at->second].layers.insert(*layer);
  ++tensors_;
}

void ShapeFaults::take_right(const TensorSpec& spec) {
  std::map<std::string, Quantity> numbers;
  append_numbers(spec.elements, numbers);
  for (const auto& [name, number] : numbers) right_.insert(name);
}

std::optional<std::uint64_t> ShapeFaults::value_for_all(const std::string& number) const {
  const auto is_for_all = [&](std::uint64_t value) {
    return std::all_of(faults_.begin(), faults_.end(), [&](const Fault& fault) {
      return value_with(fault.elements, number, value) == element_count(fault.first->shape);
    });
  };
  for (const Fault& fault : faults_) {
    const auto value = value_for(fault.elements, number, element_count(fault.first->shape).value_or(0));
    if (value && is_for_all(*value)) return value;
  }
  return std::nullopt;
}

std::optional<ShapeFaults::Cause> ShapeFaults::cause() const {
  if (faults_.size() < 2) return std::nullopt;
  std::map<std::string, Quantity> numbers;
  append_numbers(faults_.front().elements, numbers);
  std::optional<Cause> found;
  for (const auto& [name, number] : numbers) {
    if (right_.contains(name)) continue;
    const auto wanted = value_for_all(name);
    if (!wanted || *wanted == number.value()) continue;
    if (found) return std::nullopt;  // nobody can tell which
    found = Cause{number, *wanted};
  }
  return found;
}

Finding ShapeFaults::told(const Fault& fault, const Checkpoint& checkpoint, const std::string& why) const {
  return {Severity::error,
          "model.tensor_shape",
          fmt::format("is {} {}{}, {} asks for {}{}", name(fault.first->type), shape_text(fault.first->shape),
                      fault.layers.size() > 1 ? ", as in all of layers " + ranges(fault.layers) : "", who_,
                      shape_text(fault.asked), why),
          checkpoint.files[fault.first->file].name,
          fault.first->name,
          {},
          {}};
}

Findings ShapeFaults::findings(const Checkpoint& checkpoint) const {
  if (const auto found = cause()) {
    const std::string why =
        fmt::format("; all {} tensors of another shape are as {} = {} would have them, not {}", tensors_,
                    found->number.name(), found->wanted, found->number.value());
    return {told(faults_.front(), checkpoint, why)};
  }
  Findings all;
  for (const Fault& fault : faults_)
    all.push_back(told(fault, checkpoint, fault.symbols.empty() ? "" : " = " + fault.symbols));
  return all;
}

}  // namespace assay
