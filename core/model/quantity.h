// A number that remembers how it was made, so that a count can be shown as a person would write it:
//
//   Quantity hidden("hidden_size", 7168), rank("q_lora_rank", 1536);
//   Quantity weights = hidden * rank;        weights.value()   11010048
//                                            weights.numbers() "7168 × 1536"
//                                            weights.symbols() "hidden_size × q_lora_rank"
//
// Sums and products are checked: what does not fit in 64 bits is an Error, never a wrong number.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace assay {

class Quantity {
 public:
  enum class Kind { number, sum, product };

  Quantity(std::uint64_t value = 1) : value_(value) {}  // NOLINT: a bare number is a quantity without a name
  Quantity(std::string name, std::uint64_t value) : value_(value), name_(std::move(name)) {}

  std::uint64_t value() const { return value_; }
  Kind kind() const { return kind_; }
  const std::string& name() const { return name_; }              // of a number: its config key, or empty
  const std::vector<Quantity>& parts() const { return parts_; }  // of a sum or product
  // The same value under another name: head_dim, where the config left it to hidden_size / heads.
  Quantity named(std::string name) const { return {std::move(name), value_}; }

  std::string numbers() const;  // "1536 × 128 × (128 + 64)"
  std::string symbols() const;  // "q_lora_rank × num_attention_heads × (qk_nope_head_dim + qk_rope_head_dim)"

  // Throw Error::input when the value overflows 64 bits. A factor or term that is a product or sum itself is
  // flattened; multiplying by a bare 1 changes nothing.
  friend Quantity operator+(const Quantity& a, const Quantity& b);
  friend Quantity operator*(const Quantity& a, const Quantity& b);

 private:
  static Quantity join(Kind kind, const Quantity& a, const Quantity& b, std::uint64_t value);
  std::string write(bool symbols) const;

  Kind kind_ = Kind::number;
  std::uint64_t value_ = 0;
  std::string name_;
  std::vector<Quantity> parts_;
};

// The sum, with like terms gathered: a × b + a × b + b × a becomes 3 × a × b. The empty sum is 0.
Quantity gathered_sum(std::span<const Quantity> terms);

}  // namespace assay
