// Rows as codes of 8 bits. All who read them, the step's own queries too, read what the codes mean, as vLLM's caches do
// whose writes quantize; with recent=N the newest N rows stay in full until others come.
//
//   fp8    E4M3, x ≈ code · s; s = max|x| / 448 over the first step's rows of a layer, as engines calibrate on the first
//          batch: one for the keys of a layer and one for its values, or one for each head of both. It stays: what
//          is larger later is cut off at 448 s.
//   int8   x ≈ code · s, s = max|x| / 127 of each token and head.
//
// A latent counts as one head; the rotary part behind it stays in full, as FlashMLA's FP8 cache keeps it.
#include <algorithm>

#include "core/numeric/block_quantizer.h"
#include "core/system/error.h"
#include "refimpl/caches/cache_method.h"
#include "refimpl/caches/methods.h"
#include "refimpl/step/row_parts.h"

namespace assay {
namespace {

enum class Codes { fp8_tensor, fp8_head, int8 };

struct CodedForm {
  Codes codes = Codes::fp8_tensor;
  std::size_t recent = 0;
};

constexpr double kScaleBytes = 4;

// Keys or values of one layer.
class CodedPart {
 public:
  CodedPart(const RowPart& part, Codes codes) : part_(part), codes_(codes) {}

  // Learns scales where there are none yet.
  Matrix rounded(const Matrix& rows, Ops& ops) {
    if (part_.columns() == 0 || rows.empty()) return rows;
    Matrix out;
    const Matrix own = rows.part(0, part_.columns());
    if (codes_ == Codes::int8)
      out = ops.dequantize(ops.quantize(own, {.codes = ElementType::I8, .block_columns = part_.width}));
    else
      out = fp8(own, ops);
    const std::size_t rest = rows.columns() - part_.columns();
    return rest == 0 ? out : ops.concatenate(out, rows.part(part_.columns(), rest));
  }
  void forget() { scales_.clear(); }
  double row_bytes() const {
    const double scales = codes_ == Codes::int8 ? kScaleBytes * static_cast<double>(part_.heads) : 0;
    return static_cast<double>(part_.columns()) + scales;
  }
  double fixed_bytes() const { return kScaleBytes * static_cast<double>(scales_.size()); }

 private:
  Matrix fp8(const Matrix& rows, Ops& ops) {
    const std::vector<double> wide = ops.download(rows);
    std::vector<float> values(wide.begin(), wide.end());
    const std::size_t columns = part_.columns();
    const BlockQuantizer quantizer = {.codes = ElementType::F8_E4M3,
                                      .block_rows = rows.rows(),
                                      .block_columns = codes_ == Codes::fp8_head ? part_.width : columns};
    if (scales_.empty()) {
      scales_.resize(codes_ == Codes::fp8_head ? part_.heads : 1);
      if (!block_amax(values, rows.rows(), columns, rows.rows(), quantizer.block_columns, scales_))
        throw Error::input("keys or values became NaN or infinite: 8 bits cannot hold them")
            .remedy("look where with --dump, without --kv-cache");
      for (float& scale : scales_) scale = quantizer.scale_for(scale);
    }
    std::vector<std::byte> codes(values.size());
    quantize_with_scales(quantizer, values, rows.rows(), columns, scales_, codes);
    decode(ElementType::F8_E4M3, codes, values.data());
    for (std::size_t r = 0; r < rows.rows(); ++r)
      scale_row(std::span(values).subspan(r * columns, columns), quantizer.block_columns, scales_.data());
    return ops.upload(std::vector<double>(values.begin(), values.end()), rows.rows(), columns);
  }

  RowPart part_;
  Codes codes_;
  std::vector<float> scales_;
};

class CodedLayer : public LayerPolicy {
 public:
  CodedLayer(const CacheWidth& width, const CodedForm& form)
      : keys_(key_part(width), form.codes),
        values_(value_part(width), form.codes),
        form_(form),
        columns_(width.key_width + width.value_width),
        other_columns_(assay::other_columns(width)) {}

  std::size_t rows() const override { return rows_; }
  void write(Matrix& keys, Matrix& values, Ops& ops) override {
    if (form_.recent != 0) return;
    if (rows_ == 0) keys_.forget(), values_.forget();
    keys = keys_.rounded(keys, ops);
    values = values_.rounded(values, ops);
  }
  void settle(const CacheRows& rows, std::size_t count) override {
    rows_ += count;
    const std::size_t end = form_.recent == 0 ? rows_ : rows_ - std::min(rows_, form_.recent);
    if (form_.recent != 0 && end > coded_) {
      for (auto& [part, all] :
           {std::pair<CodedPart*, PagedKvView>{&keys_, rows.keys}, {&values_, rows.values}}) {
        if (all.base.empty()) continue;
        rows.ops.store({.base = all.base}, coded_,
                       part->rounded(all.base.row_range(coded_, end - coded_), rows.ops));
      }
    }
    coded_ = end;
  }
  double bytes() const override {
    const double coded =
        keys_.row_bytes() + values_.row_bytes() + static_cast<double>(other_columns_) * kFullBytes;
    return static_cast<double>(coded_) * coded +
           static_cast<double>((rows_ - coded_) * columns_) * kFullBytes + keys_.fixed_bytes() +
           values_.fixed_bytes();
  }

 private:
  CodedPart keys_, values_;
  CodedForm form_;
  std::size_t columns_, other_columns_;
  std::size_t rows_ = 0, coded_ = 0;
};

class CodedCache : public CacheMethod {
 public:
  CodedCache(std::string name, const CodedForm& form) : name_(std::move(name)), form_(form) {}
  std::string name() const override { return name_; }
  std::unique_ptr<LayerPolicy> layer(const CacheLayer& layer, std::size_t) const override {
    if (!can_be_cut(layer.width)) return nullptr;
    return std::make_unique<CodedLayer>(layer.width, form_);
  }
  bool rounds_single_rows() const { return form_.codes == Codes::int8 && form_.recent == 0; }

 private:
  std::string name_;
  CodedForm form_;
};

}  // namespace

bool rounds_single_rows(const CacheMethod& method) {
  const auto* coded = dynamic_cast<const CodedCache*>(&method);
  return coded != nullptr && coded->rounds_single_rows();
}

MadeCacheMethod make_fp8_cache(MethodText& text) {
  CodedForm form;
  form.codes = text.word("scale", {"tensor", "head"}) == "head" ? Codes::fp8_head : Codes::fp8_tensor;
  form.recent = text.number("recent", 0);
  return std::make_shared<CodedCache>(text.text(), form);
}

MadeCacheMethod make_int8_cache(MethodText& text) {
  return std::make_shared<CodedCache>(text.text(), CodedForm{Codes::int8, text.number("recent", 0)});
}

}  // namespace assay
