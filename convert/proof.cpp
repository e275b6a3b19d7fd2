#include "convert/proof.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "convert/equal.h"
#include "convert/pipeline.h"
#include "convert/scale_map.h"
#include "core/formats/stream_digest.h"
#include "core/system/threads.h"

namespace assay {
namespace {

constexpr std::uint64_t kAtOnce = 1 << 20;

Digest digest_of(const CheckpointReader& reader, const CheckpointTensor& tensor, Progress& progress) {
  StreamDigest digest(DigestKind::sha256, tensor.bytes);
  std::vector<std::byte> buffer(std::min(tensor.bytes, kAtOnce));
  for (std::uint64_t at = 0; at < tensor.bytes; at += kAtOnce) {
    if (interrupted()) throw Interrupted{};
    const auto piece = std::span(buffer).first(std::min(kAtOnce, tensor.bytes - at));
    reader.read(tensor, at, piece);
    digest.update(piece);
    progress.add(piece.size());
  }
  return digest.finish();
}

Digest digest_of(const std::vector<Digest>& digests) {
  StreamDigest all(DigestKind::sha256, digests.size() * 32);
  for (const Digest& digest : digests) all.update(std::as_bytes(std::span(digest.bytes)));
  return all.finish();
}

// Scale (i, j) of the new grid against the old one that covers the same rows and columns.
std::string scale_fault(const CheckpointReader& source, const LogicalTensor& old,
                        const CheckpointReader& output, const LogicalTensor& made) {
  const ScaleMap rows{old.rows, old.form.block_rows, made.form.block_rows};
  const ScaleMap columns{old.columns, old.form.block_columns, made.form.block_columns};
  std::vector<float> before(old.slices * old.scale_rows() * old.scale_columns());
  std::vector<float> after(made.slices * made.scale_rows() * made.scale_columns());
  StoredReader(source, old).decode_scales(0, old.slices * old.scale_rows(), before);
  StoredReader(output, made).decode_scales(0, made.slices * made.scale_rows(), after);
  for (std::uint64_t block = 0; block < made.slices * made.scale_rows(); ++block) {
    const std::uint64_t top =
        block / made.scale_rows() * old.scale_rows() + rows.first(block % made.scale_rows());
    for (std::uint64_t j = 0; j < made.scale_columns(); ++j) {
      if (std::memcmp(&before[top * old.scale_columns() + columns.first(j)],
                      &after[block * made.scale_columns() + j], sizeof(float)) != 0)
        return fmt::format("{}: scale [{}, {}] is not that of its block", old.name, block, j);
    }
  }
  return {};
}

}  // namespace

Proof prove(const ConversionPlan& plan, const CheckpointReader& source, const fs::path& output, int jobs,
            Progress& progress) {
  const Side made(output, jobs);
  std::unordered_map<std::string_view, const LogicalTensor*> places;
  for (const LogicalTensor& tensor : made.stored.tensors) places.emplace(tensor.name, &tensor);

  // Every tensor of the source, and what became of it under the same name.
  Proof proof;
  const auto& tensors = plan.checkpoint.tensors;
  std::vector<bool> kept(tensors.size(), true);
  for (std::size_t i = 0; i < plan.left_out.size(); ++i) kept[i] = !plan.left_out[i];
  for (const Work& work : plan.works) {
    if (work.action == WorkAction::reblock) kept[*plan.stored.tensors[work.tensor].scale] = false;
  }
  std::vector<Digest> before(tensors.size()), after(tensors.size());
  std::vector<std::string> faults(tensors.size() + plan.works.size());
  parallel_for(jobs, tensors.size(), [&](std::size_t i) {
    if (!kept[i]) return;
    const CheckpointTensor* copy = made.checkpoint.find(tensors[i].name);
    if (copy == nullptr || copy->type != tensors[i].type || copy->shape != tensors[i].shape) {
      faults[i] = fmt::format("{}: missing or changed in the output", tensors[i].name);
      return;
    }
    before[i] = digest_of(source, tensors[i], progress);
    after[i] = digest_of(made.reader, *copy, progress);
    if (before[i] != after[i]) faults[i] = fmt::format("{}: its stored bytes changed", tensors[i].name);
  });

  parallel_for(jobs, plan.works.size(), [&](std::size_t i) {
    const LogicalTensor& old = plan.stored.tensors[plan.works[i].tensor];
    if (plan.works[i].action != WorkAction::reblock) return;
    std::string& fault = faults[tensors.size() + i];
    const auto found = places.find(old.name);
    if (found == places.end() || found->second->form.kind != FormKind::scaled) {
      fault = fmt::format("{}: missing in the output", old.name);
      return;
    }
    fault = scale_fault(source, old, made.reader, *found->second);
    if (const auto differs = compare_tensor(source, old, made.reader, *found->second, 0, progress); differs)
      fault = fmt::format("{}: {}", old.name, differs->what);
  });
  for (const Work& work : plan.works) {
    if (work.action != WorkAction::reblock) continue;
    const LogicalTensor& old = plan.stored.tensors[work.tensor];
    proof.values += old.elements();
    if (const auto found = places.find(old.name); found != places.end())
      proof.scales += found->second->slices * found->second->scale_rows() * found->second->scale_columns();
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!kept[i]) continue;
    ++proof.tensors;
    proof.code_bytes += tensors[i].bytes;
  }
  for (std::string& fault : faults) {
    if (!fault.empty()) proof.faults.push_back(std::move(fault));
  }
  proof.before = digest_of(before);
  proof.after = digest_of(after);
  return proof;
}

}  // namespace assay
