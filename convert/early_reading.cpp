#include "convert/early_reading.h"

namespace assay {

std::optional<std::uint8_t> first_non_finite(ElementType codes) {
  switch (codes) {
    case ElementType::F8_E4M3: return 0x7F;
    case ElementType::F8_E5M2: return 0x7C;
    case ElementType::I8: return 0x80;
    default: return std::nullopt;
  }
}

bool EarlyReading::suits(const ConversionPlan& plan) {
  return plan.lossless() && !plan.ranks && !plan.gguf && plan.gathered.empty();
}

void EarlyReading::add(const OutputShard& shard, std::shared_ptr<const File> file) {
  const auto disk = std::make_shared<const DiskFile>(std::move(file));  // before the file gets another name
  const std::lock_guard lock(mutex_);
  for (const OutputTensor& tensor : shard.tensors) {
    if (tensor.source != OutputTensor::Source::stored) continue;
    const auto [place, is_new] = reads_.try_emplace(tensor.from);
    if (!is_new) continue;
    EarlyRead& early = place->second;
    early.file = shard.name;
    early.offset = tensor.offset;
    const CheckpointTensor& stored = plan_.checkpoint.tensors[tensor.from];
    const ReadBytes before = [this, &stored](std::uint64_t at, std::span<std::byte> out) {
      source_.read(stored, at, out);
    };
    reading_.add({stored.bytes, before, nullptr, [disk] { return disk; }, tensor.offset,
                  first_non_finite(stored.type).value_or(0x80)},
                 early.read);
  }
}

EarlyReads EarlyReading::finish() {
  reading_.finish();
  return std::move(reads_);
}

}  // namespace assay
