#include "refimpl/engine/tap_recorder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/formats/safetensors.h"
#include "core/system/error.h"
#include "core/system/text.h"

namespace assay {

void TapRecorder::see(const std::string& name, const Matrix& value) {
  if (!filter_.accepts(name)) {
    if (passed_.size() < 12) passed_.push_back(name);
    return;
  }
  bytes_ += value.rows() * value.columns() * sizeof(double);
  if (bytes_ > limit_)
    throw Error::input(fmt::format("the intermediates asked for exceed {}", human_bytes(limit_)))
        .remedy("ask for fewer with --taps, or for fewer tokens");
  Taken& taken = taken_[name];
  taken.width = value.columns();
  const std::vector<double> values = ops_.download(value);
  taken.values.insert(taken.values.end(), values.begin(), values.end());
}

void TapRecorder::require_some(const std::string& pattern) const {
  if (!taken_.empty()) return;
  throw Error::usage(fmt::format("--taps \"{}\" matches no intermediate", escape_for_terminal(pattern)))
      .remedy(fmt::format("there are {} …", fmt::join(passed_, ", ")));
}

void TapRecorder::write(const fs::path& path,
                        const std::vector<std::pair<std::string, std::string>>& metadata) const {
  std::vector<NamedMatrix> matrices;
  for (const auto& [name, taken] : taken_)
    matrices.push_back({name, {taken.values.size() / taken.width, taken.width}, &taken.values});
  write_matrices(path, matrices, ops_.arithmetic().storage() == Real::f64, metadata);
}

void write_matrices(const fs::path& path, const std::vector<NamedMatrix>& matrices, bool wide,
                    const std::vector<std::pair<std::string, std::string>>& metadata) {
  const ElementType type = wide ? ElementType::F64 : ElementType::F32;
  std::vector<safetensors::Tensor> tensors;
  for (const NamedMatrix& matrix : matrices) tensors.push_back({matrix.name, type, matrix.shape});
  AtomicFile file(path);
  file.write(safetensors::serialize_header(tensors, metadata));
  for (const NamedMatrix& matrix : matrices) {
    if (wide) {
      file.write(std::as_bytes(std::span(*matrix.values)));
      continue;
    }
    const std::vector<float> narrow(matrix.values->begin(), matrix.values->end());
    file.write(std::as_bytes(std::span(narrow)));
  }
  file.commit();
}

}  // namespace assay
