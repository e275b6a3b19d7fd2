#include "refimpl/models/norms.h"

namespace assay {
namespace {

// Two and two, so that none is copied more than a few times.
Matrix side_by_side(std::vector<Matrix> parts, Ops& ops) {
  while (parts.size() > 1) {
    std::vector<Matrix> pairs;
    for (std::size_t i = 0; i + 1 < parts.size(); i += 2)
      pairs.push_back(ops.concatenate(parts[i], parts[i + 1]));
    if (parts.size() % 2 != 0) pairs.push_back(parts.back());
    parts = std::move(pairs);
  }
  return parts.at(0);
}

Matrix columns_scaled(const Matrix& x, const std::vector<double>& factors, Ops& ops) {
  if (factors.empty()) return x;
  std::vector<double> values = ops.download(x);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] *= factors[i % factors.size()];
  return ops.upload(values, x.rows(), x.columns());
}

}  // namespace

Norm::Norm(const WeightView& weight, const WeightView& bias, const NormRule& rule) : rule_(rule) {
  if (!weight) return;
  for (std::size_t i = 0; i < weight.rows; ++i)
    add(weight.rows == 1 ? weight : weight.row_range(i, 1),
        !bias || weight.rows == 1 ? bias : bias.row_range(i, 1));
}

Norm::Norm(const std::vector<WeightView>& of_heads, const NormRule& rule) : rule_(rule) {
  for (const WeightView& weight : of_heads) add(weight, {});
}

Norm Norm::unweighted(std::size_t width, const NormRule& rule) {
  Norm norm;
  norm.rule_ = rule;
  if (rule.form == NormForm::one_plus_weight) norm.rule_.form = NormForm::weight_inside;
  norm.parts_.push_back({norm.own("ones", std::vector<double>(width, 1.0)), {}});
  return norm;
}

Norm Norm::of_row(const WeightView& weight, std::size_t heads, const NormRule& rule) {
  Norm norm;
  if (!weight) return norm;
  norm.rule_ = rule;
  const std::vector<double> values = decode_vector(weight);
  const std::size_t width = values.size() / heads;
  for (std::size_t head = 0; head < heads; ++head) {
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(head * width);
    norm.parts_.push_back(
        {norm.own(*weight.name, std::vector<double>(first, first + static_cast<std::ptrdiff_t>(width))), {}});
  }
  return norm;
}

Norm Norm::with_offset(const WeightView& weight, double offset, const NormRule& rule) {
  Norm norm;
  if (!weight) return norm;
  norm.rule_ = {NormKind::rms, NormForm::weight_inside, rule.epsilon};
  std::vector<double> values = decode_vector(weight);
  for (double& value : values) value += offset;
  norm.parts_.push_back({norm.own(*weight.name, std::move(values)), {}});
  return norm;
}

Norm Norm::of_scaled(const WeightView& weight, const NormRule& rule) {
  if (!weight) return {};
  Norm norm = unweighted(weight.columns, rule);
  norm.before_ = decode_vector(weight);
  for (double& value : norm.before_) value += 1;
  return norm;
}

void Norm::add(const WeightView& weight, const WeightView& bias) {
  if (rule_.kind == NormKind::rms || rule_.form != NormForm::one_plus_weight) {
    parts_.push_back({weight, bias});
    return;
  }
  std::vector<double> values = decode_vector(weight);
  for (double& value : values) value += 1;
  parts_.push_back({own(*weight.name, std::move(values)), bias});
}

WeightView Norm::own(std::string name, std::vector<double> values) {
  constants_.push_back(std::make_shared<const OwnWeight>(std::move(name), std::move(values)));
  return constants_.back()->view();
}

Matrix Norm::of_part(const Matrix& x, const Part& part, Ops& ops) const {
  return rule_.kind == NormKind::rms ? ops.rms_norm(x, part.weight, rule_.epsilon, rule_.form)
                                     : ops.layer_norm(x, part.weight, part.bias, rule_.epsilon);
}

Matrix Norm::operator()(const Matrix& x, Ops& ops) const {
  if (parts_.empty()) return x;
  if (parts_.size() == 1) return of_part(columns_scaled(x, before_, ops), parts_.front(), ops);
  const std::size_t width = x.columns() / parts_.size();
  std::vector<Matrix> heads;
  for (std::size_t i = 0; i < parts_.size(); ++i)
    heads.push_back(of_part(x.part(i * width, width), parts_[i], ops));
  return side_by_side(std::move(heads), ops);
}

}  // namespace assay
