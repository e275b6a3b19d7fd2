// KIVI (Liu et al., arXiv 2402.02750 §3.3, Algorithm 1): channels of keys have outliers that stay in their channel, so keys
// are quantized by channel, in groups of `group` tokens; values by token, in groups of `group` channels of a head:
//
//   z = min x, s = (max x - min x) / (2^bits - 1), code = round((x - z) / s), x ≈ code · s + z       of each group
//
// s and z are halves. What is newest stays in full: of n tokens the last n mod `residual` keys, and the last `residual`
// values. A prompt is attended to in full: only what is kept of it is quantized.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/numeric/codec.h"
#include "core/system/error.h"
#include "refimpl/caches/methods.h"
#include "refimpl/step/row_parts.h"

namespace assay {
namespace {

struct KiviForm {
  int bits = 2;
  std::size_t group = 32, residual = 128;
  bool keys_by_channel = true;
};

double as_half(double x) {
  const float half = decode(kF16, encode(kF16, static_cast<float>(x), Overflow::special));
  if (!std::isfinite(half))
    throw Error::input(fmt::format("kivi: {} is no half: keys or values too large", x));
  return half;
}

// `count` numbers, `apart` from each other.
void round_group(double* x, std::size_t count, std::size_t apart, int bits) {
  double least = x[0], most = x[0];
  for (std::size_t i = 0; i < count; ++i) {
    least = std::min(least, x[i * apart]);
    most = std::max(most, x[i * apart]);
  }
  const double steps = std::exp2(bits) - 1, zero = as_half(least), scale = as_half((most - least) / steps);
  for (std::size_t i = 0; i < count; ++i) {
    double& each = x[i * apart];
    const double code = scale == 0 ? 0 : std::clamp(std::nearbyint((each - zero) / scale), 0.0, steps);
    each = code * scale + zero;
  }
}

// Of rows [rows, heads · width]: each channel in groups of tokens.
void round_by_channel(std::vector<double>& x, std::size_t columns, const KiviForm& form) {
  const std::size_t rows = x.size() / columns;
  for (std::size_t first = 0; first < rows; first += form.group) {
    for (std::size_t c = 0; c < columns; ++c)
      round_group(&x[first * columns + c], std::min(form.group, rows - first), columns, form.bits);
  }
}

// Each token in groups of channels of a head.
void round_by_token(std::vector<double>& x, const RowPart& part, const KiviForm& form) {
  for (std::size_t head = 0; head < x.size(); head += part.width) {
    for (std::size_t c = 0; c < part.width; c += form.group)
      round_group(&x[head + c], std::min(form.group, part.width - c), 1, form.bits);
  }
}

class KiviLayer : public LayerPolicy {
 public:
  KiviLayer(const CacheWidth& width, const KiviForm& form)
      : key_(key_part(width)), value_(value_part(width)), form_(form) {}

  std::size_t rows() const override { return rows_; }
  void settle(const CacheRows& rows, std::size_t count) override {
    rows_ += count;
    if (form_.residual == kEverything) return;
    keys_coded_ = round(rows.ops, rows.keys, keys_coded_, rows_ - rows_ % form_.residual, [&](auto& x) {
      form_.keys_by_channel ? round_by_channel(x, key_.columns(), form_) : round_by_token(x, key_, form_);
    });
    values_coded_ = round(rows.ops, rows.values, values_coded_, rows_ - std::min(rows_, form_.residual),
                          [&](auto& x) { round_by_token(x, value_, form_); });
  }
  double bytes() const override {
    const auto real = [](std::size_t n) { return static_cast<double>(n); };
    const auto groups = [&](std::size_t n) { return real((n + form_.group - 1) / form_.group); };
    constexpr double kGroupBytes = 4;  // two halves
    const auto by_token = [&](std::size_t coded, const RowPart& part) {
      return real(coded * part.heads) * groups(part.width) * kGroupBytes;
    };
    const double code_bytes =
        real(keys_coded_ * key_.columns() + values_coded_ * value_.columns()) * form_.bits / 8;
    const double key_groups = form_.keys_by_channel ? groups(keys_coded_) * real(key_.columns()) * kGroupBytes
                                                    : by_token(keys_coded_, key_);
    const std::size_t full =
        (rows_ - keys_coded_) * key_.columns() + (rows_ - values_coded_) * value_.columns();
    return code_bytes + key_groups + by_token(values_coded_, value_) + real(full) * kFullBytes;
  }

 private:
  template <class Round>
  static std::size_t round(Ops& ops, const PagedKvView& rows, std::size_t from, std::size_t to,
                           const Round& how) {
    if (to <= from) return from;
    std::vector<double> x = ops.download(rows.base.row_range(from, to - from));
    how(x);
    ops.store({.base = rows.base}, from, ops.upload(x, to - from, rows.base.columns()));
    return to;
  }

  RowPart key_, value_;
  KiviForm form_;
  std::size_t rows_ = 0, keys_coded_ = 0, values_coded_ = 0;
};

class KiviCache : public CacheMethod {
 public:
  KiviCache(std::string name, const KiviForm& form) : name_(std::move(name)), form_(form) {}
  std::string name() const override { return name_; }
  // Not of latents, which are keys and values in one.
  std::unique_ptr<LayerPolicy> layer(const CacheLayer& layer, std::size_t) const override {
    if (layer.width.kv_heads == 0) return nullptr;
    return std::make_unique<KiviLayer>(layer.width, form_);
  }

 private:
  std::string name_;
  KiviForm form_;
};

}  // namespace

MadeCacheMethod make_kivi_cache(MethodText& text, int bits) {
  KiviForm form = {.bits = bits};
  form.group = text.number("group", form.group, 1);
  form.residual = text.number("residual", std::max<std::size_t>(form.residual, form.group), 1);
  form.keys_by_channel = text.word("keys", {"channel", "token"}) == "channel";
  if (form.group == kEverything) throw Error::usage("kivi: a group is a number of tokens");
  if (form.residual != kEverything && form.residual % form.group != 0)
    throw Error::usage(
        fmt::format("kivi: a residual of {} is not made of groups of {}", form.residual, form.group));
  return std::make_shared<KiviCache>(text.text(), form);
}

}  // namespace assay
