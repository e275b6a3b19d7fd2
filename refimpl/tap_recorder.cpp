#include "refimpl/tap_recorder.h"

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

void TapRecorder::step(std::span<const std::uint32_t> tokens) {
  ids_.insert(ids_.end(), tokens.begin(), tokens.end());
}

void TapRecorder::write(const fs::path& path,
                        const std::vector<std::pair<std::string, std::string>>& metadata) const {
  const bool wide = ops_.arithmetic().storage() == Real::f64;
  std::vector<safetensors::Tensor> tensors = {{"input_ids", ElementType::I64, {ids_.size()}}};
  for (const auto& [name, taken] : taken_)
    tensors.push_back(
        {name, wide ? ElementType::F64 : ElementType::F32, {taken.values.size() / taken.width, taken.width}});
  AtomicFile file(path);
  file.write(safetensors::serialize_header(tensors, metadata));
  file.write(std::as_bytes(std::span(ids_)));
  for (const auto& [name, taken] : taken_) {
    if (wide) {
      file.write(std::as_bytes(std::span(taken.values)));
      continue;
    }
    const std::vector<float> narrow(taken.values.begin(), taken.values.end());
    file.write(std::as_bytes(std::span(narrow)));
  }
  file.commit();
}

}  // namespace assay
