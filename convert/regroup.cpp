#include "convert/regroup.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <future>
#include <mutex>
#include <set>

#include "convert/convert.h"
#include "convert/journal.h"
#include "convert/plausible.h"
#include "convert/repack.h"
#include "convert/scale_check.h"
#include "core/formats/checksum_manifest.h"
#include "core/formats/stream_digest.h"
#include "core/model/stored_reader.h"
#include "core/numeric/codec_simd.h"
#include "core/numeric/float_loops.h"
#include "core/numeric/gguf_blocks.h"
#include "core/numeric/gguf_quantize.h"
#include "core/system/error.h"
#include "core/system/text.h"
#include "core/system/threads.h"

namespace assay {
namespace {

constexpr std::uint64_t kPieceElements = 1 << 20;
constexpr std::uint64_t kBytesAnElement = 20;        // stored, decoded, reordered, encoded, decoded again
constexpr std::uint64_t kBatchBytes = 256ull << 20;  // brought to disk at once
constexpr const char* kManifest = "SHA256SUMS";

std::uint64_t rows_a_piece(const DerivedTensor& tensor) {
  const std::uint64_t rows =
      std::max<std::uint64_t>(1, kPieceElements / std::max<std::uint64_t>(1, tensor.columns()));
  const std::uint64_t unit = std::max<std::uint64_t>(1, tensor.head_rows);
  return std::max(unit, rows / unit * unit);
}

// Whether the bytes of the target are those of the source.
std::optional<std::uint32_t> copied_from(const RegroupTensor& tensor, const StoredTensors& stored) {
  const auto source = tensor.made.same_as(stored);
  if (!source || stored.tensors[*source].quantized() || stored.tensors[*source].form.codes != tensor.type)
    return std::nullopt;
  return source;
}

std::vector<float> decoded(ElementType type, std::span<const std::byte> stored, std::size_t count) {
  std::vector<float> values(count);
  if (info(type).in_safetensors)
    simd::decode(type, stored, values.data());
  else
    dequantize(type, stored, values.data());
  return values;
}

// A journal entry here is of one tensor, or of one whole file.
Digest sha256_of(const FinishedShard& entry) {
  return entry.files.at(0).sha256;
}

class Regrouper {
 public:
  Regrouper(const RegroupPlan& plan, const fs::path& out, const ConvertOptions& options, ProgressMode mode)
      : plan_(plan),
        out_(out),
        folder_(out, begin_of(options)),
        partial_(folder_.path()),
        options_(options),
        mode_(mode),
        source_(plan.checkpoint),
        reader_(source_, plan.stored) {}

  RegroupResult run() {
    if (was_published()) return std::move(result_);
    regroup_space(plan_, out_).require(out_);
    journal_.emplace(partial_, key());
    finished_before_ = journal_->finished();
    try {
      for (const RegroupFile& file : plan_.files) write_file(file);
      source_.check_unchanged();
      finish();
    } catch (const Interrupted&) {
      result_.interrupted = true;
    } catch (const Error& error) {
      throw folder_.after(error);
    }
    return std::move(result_);
  }

 private:
  std::string key() const {
    std::string what = fmt::format("{}\n{}\n{}\n", plan_.to, options_.allow_large, plan_.roles);
    const auto digest_of_values = [](std::span<const float> values) {
      return assay::digest_of(DigestKind::sha256, std::as_bytes(values)).hex();
    };
    for (const RegroupFile& file : plan_.files) {
      for (const RegroupTensor& tensor : file.tensors) {
        if (!tensor.importance.empty()) what += digest_of_values(tensor.importance);
      }
      const Digest header = assay::digest_of(DigestKind::sha256, std::as_bytes(std::span(file.header)));
      what += fmt::format("{} {} {}\n", file.name, file.bytes, header.hex());
    }
    return Journal::key(std::move(what), plan_.checkpoint);
  }

  static std::string entry(const RegroupFile& file, const RegroupTensor& tensor) {
    return file.name + "\n" + tensor.made.name;
  }

  // By a run that was killed while it tidied up. What is left of it goes.
  bool was_published() {
    if (!options_.resume || !folder_.is_sealed()) return false;
    finished_before_ = Journal::read(folder_.record(), key());
    const auto whole = [this](const RegroupFile& file) { return is_published(file); };
    if (!std::all_of(plan_.files.begin(), plan_.files.end(), whole)) {
      folder_.unseal();
      return false;
    }
    folder_.remove();
    for (const RegroupFile& file : plan_.files) reuse(file);
    result_.note = kFoundWhole;
    return true;
  }

  bool is_published(const RegroupFile& file) const {
    const auto entry = finished_before_.find(file.name);
    return entry != finished_before_.end() &&
           is_whole(regrouped_path(plan_, file, out_).parent_path(), entry->second.files.at(0));
  }

  // --- one file --------------------------------------------------------------------------------------------

  using Batch = std::vector<const RegroupTensor*>;

  void write_file(const RegroupFile& file) {
    if (is_published(file)) {  // by a run that was killed before it had removed its folder
      reuse(file);
      return;
    }
    std::error_code error;
    if (!options_.overwrite && fs::exists(regrouped_path(plan_, file, out_), error))
      throw Error::refused("exists already").in(regrouped_path(plan_, file, out_)).remedy("name a new file");
    ResumableFile target(partial_ / file.name);
    target.write_at(0, std::as_bytes(std::span(file.header)));
    Progress progress(mode_, "Writing", file.bytes);
    Batch batch;
    std::uint64_t bytes = 0;
    std::future<void> closing;  // one batch is brought to disk while the next is made
    const auto flush = [&] {
      if (batch.empty()) return;
      auto sums = write_batch(batch, target, progress);
      if (closing.valid()) closing.get();
      closing =
          std::async(std::launch::async, [this, &file, &target, written = std::move(batch),
                                          made = std::move(sums)] { record(file, target, written, made); });
      batch.clear();
      bytes = 0;
    };
    for (const RegroupTensor& tensor : file.tensors) {
      if (is_there(file, tensor, target)) {
        reuse(file, tensor);
        progress.add(tensor.bytes);
        continue;
      }
      progress.item(tensor.made.name);
      batch.push_back(&tensor);
      bytes += tensor.bytes;
      if (bytes >= kBatchBytes) flush();
    }
    flush();
    if (closing.valid()) closing.get();
    pad_end(file, target);
  }

  // Whether an earlier run wrote it, and it still is what it was.
  bool is_there(const RegroupFile& file, const RegroupTensor& tensor, const ResumableFile& target) const {
    const auto known = finished_before_.find(entry(file, tensor));
    std::error_code error;
    return known != finished_before_.end() &&
           fs::file_size(target.path(), error) >= tensor.offset + tensor.bytes && !error &&
           digest_of(tensor, target) == sha256_of(known->second);
  }

  static Digest digest_of(const RegroupTensor& tensor, const ResumableFile& target) {
    StreamDigest digest(DigestKind::sha256, tensor.bytes);
    std::vector<std::byte> buffer(std::min<std::uint64_t>(1 << 20, tensor.bytes));
    for (std::uint64_t at = 0; at < tensor.bytes; at += buffer.size()) {
      const auto piece = std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), tensor.bytes - at));
      target.read_exactly(tensor.offset + at, piece);
      digest.update(piece);
    }
    return digest.finish();
  }

  void reuse(const RegroupFile& file) {
    result_.files[file.name] = sha256_of(finished_before_.at(file.name));
    for (const RegroupTensor& tensor : file.tensors) reuse(file, tensor);
  }

  void reuse(const RegroupFile& file, const RegroupTensor& tensor) {
    const FinishedShard& known = finished_before_.at(entry(file, tensor));
    const std::lock_guard lock(mutex_);
    result_.tensors[tensor.made.name] = {sha256_of(known),
                                         known.errors.empty() ? ErrorSums{} : known.errors.front().sums};
    ++result_.reused;
  }

  // The padding of the last tensor; that between tensors is the hole between two writes.
  static void pad_end(const RegroupFile& file, ResumableFile& target) {
    const std::uint64_t end =
        file.tensors.empty() ? file.header.size() : file.tensors.back().offset + file.tensors.back().bytes;
    target.write_at(end, std::vector<std::byte>(file.bytes - end));
  }

  std::vector<ErrorSums> write_batch(const Batch& batch, ResumableFile& target, Progress& progress) {
    struct Piece {
      std::size_t tensor;
      std::uint64_t first, rows;
      ErrorSums sums;
    };
    std::vector<Piece> pieces;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const std::uint64_t step = rows_a_piece(batch[i]->made), rows = batch[i]->made.rows();
      for (std::uint64_t first = 0; first < rows; first += step)
        pieces.push_back({i, first, std::min(step, rows - first), {}});
    }
    check_sources(batch);
    const std::uint64_t piece = largest_regroup_piece(plan_);
    const int jobs = static_cast<int>(
        std::clamp<std::uint64_t>(options_.memory / piece, 1, static_cast<std::uint64_t>(options_.jobs)));
    parallel_for(jobs, pieces.size(), [&](std::size_t i) {
      if (interrupted()) throw Interrupted{};
      Piece& p = pieces[i];
      p.sums = write_rows(*batch[p.tensor], p.first, p.rows, target);
      progress.add(p.rows *
                   (batch[p.tensor]->bytes / std::max<std::uint64_t>(1, batch[p.tensor]->made.rows())));
    });
    std::vector<ErrorSums> sums(batch.size());
    for (const Piece& p : pieces) sums[p.tensor].add(p.sums);
    return sums;
  }

  void check_sources(const Batch& batch) const {
    std::set<std::uint32_t> sources;
    for (const RegroupTensor* tensor : batch) {
      for (const DerivedTensor::Piece& piece : tensor->made.pieces) sources.insert(piece.source);
    }
    for (const std::uint32_t source : sources) check_scales(source_, plan_.stored.tensors[source]);
  }

  ErrorSums write_rows(const RegroupTensor& tensor, std::uint64_t first, std::uint64_t rows,
                       ResumableFile& target) const {
    const std::uint64_t columns = tensor.made.columns();
    const std::uint64_t row_bytes = storage_bytes(tensor.type, columns).value();
    std::vector<std::byte> stored(rows * row_bytes);
    if (const auto source = copied_from(tensor, plan_.stored)) {
      source_.read(plan_.checkpoint.tensors[plan_.stored.tensors[*source].codes], first * row_bytes, stored);
      check_copied(tensor, stored, rows * columns);
      target.write_at(tensor.offset + first * row_bytes, stored);
      ErrorSums none;
      none.elements = rows * columns;
      return none;
    }
    std::vector<float> before(rows * columns);
    reader_.read(tensor.made, first, rows, before);
    check_values(tensor.made, before);
    if (tensor.repacked) {
      repack_rows(source_, plan_.stored, tensor.made, tensor.type, first, rows, stored);
      target.write_at(tensor.offset + first * row_bytes, stored);
      ErrorSums none;
      none.elements = before.size();
      return none;
    }
    if (const auto fault = quantize(tensor, first, before, stored)) {
      const bool finite = fault->kind != QuantizeFault::Kind::not_finite;
      throw Error::refused(finite
                               ? fmt::format("a value is too large for {}", name(tensor.type))
                               : fmt::format("element {} is NaN or infinite", first * columns + fault->index))
          .tensor(tensor.made.name)
          .remedy(finite ? "choose bf16 or f32" : "the source is damaged");
    }
    ErrorSums sums;
    sums.add(before, decoded(tensor.type, stored, before.size()));
    target.write_at(tensor.offset + first * row_bytes, stored);
    return sums;
  }

  static std::optional<QuantizeFault> quantize(const RegroupTensor& tensor, std::uint64_t first,
                                               std::span<const float> values, std::span<std::byte> stored) {
    if (tensor.importance.empty()) return gguf_quantize(tensor.type, values, stored.data());
    const std::uint64_t columns = tensor.made.columns();
    const std::uint64_t rows_a_matrix = tensor.made.rows() / (tensor.importance.size() / columns);
    const std::uint64_t row_bytes = stored.size() / (values.size() / columns);
    for (std::uint64_t row = 0; row * columns < values.size(); ++row) {
      const std::uint64_t matrix = (first + row) / rows_a_matrix;
      auto fault = gguf_quantize_row(tensor.type, values.subspan(row * columns, columns),
                                     std::span(tensor.importance).subspan(matrix * columns, columns),
                                     stored.subspan(row * row_bytes).data());
      if (!fault) continue;
      fault->index += row * columns;
      return fault;
    }
    return std::nullopt;
  }

  void check_copied(const RegroupTensor& tensor, std::span<const std::byte> stored, std::size_t count) const {
    if (!info(tensor.type).is_float) return;
    const std::vector<float> values = decoded(tensor.type, stored, count);
    const bool finite = std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
    if (!finite)
      throw Error::refused("a NaN or infinite value")
          .tensor(tensor.made.name)
          .remedy("the source is damaged");
  }

  void check_values(const DerivedTensor& tensor, std::span<const float> values) const {
    if (tensor.pieces.empty()) return;
    const float amax = std::bit_cast<float>(largest_magnitude_bits(values.data(), values.size()));
    check_plausible(plan_.stored.tensors[tensor.pieces.front().source], amax, options_);
  }

  void record(const RegroupFile& file, ResumableFile& target, const Batch& batch,
              const std::vector<ErrorSums>& sums) {
    target.sync();
    source_.check_unchanged();
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const RegroupTensor& tensor = *batch[i];
      RegroupResult::TensorResult made{digest_of(tensor, target), sums[i]};
      journal_->add(entry(file, tensor),
                    {{{tensor.made.name, tensor.bytes, made.sha256}}, {WorkError{0, made.error}}});
      const std::lock_guard lock(mutex_);
      result_.tensors[tensor.made.name] = std::move(made);
    }
  }

  // --- the end ---------------------------------------------------------------------------------------------

  void finish() {
    for (const RegroupFile& file : plan_.files) {
      if (result_.files.contains(file.name)) continue;
      const Digest digest = sha256_of_file(File::open(partial_ / file.name));
      result_.files[file.name] = digest;
      journal_->add(file.name, {{{file.name, file.bytes, digest}}, {}});
    }
    if (plan_.folder) return finish_folder();
    for (const RegroupFile& file : plan_.files) {
      std::error_code error;
      if (!fs::exists(partial_ / file.name, error)) continue;
      ResumableFile(partial_ / file.name).publish(regrouped_path(plan_, file, out_));
    }
    folder_.seal();
    folder_.remove();
  }

  void finish_folder() {
    for (const auto& [name, text] : plan_.texts) {
      AtomicFile file(partial_ / name);
      file.write(text);
      file.commit();
      result_.files[name] = assay::digest_of(DigestKind::sha256, std::as_bytes(std::span(text)));
    }
    std::string manifest;
    for (const auto& [name, digest] : result_.files) manifest += checksum_line(digest, name);
    AtomicFile file(partial_ / kManifest);
    file.write(manifest);
    file.commit();
    folder_.seal();
    folder_.publish();
  }

  const RegroupPlan& plan_;
  const fs::path& out_;
  PartialFolder folder_;
  const fs::path& partial_;
  const ConvertOptions& options_;
  ProgressMode mode_;
  CheckpointReader source_;
  DerivedReader reader_;
  std::optional<Journal> journal_;
  std::map<std::string, FinishedShard> finished_before_;
  std::mutex mutex_;  // of result_
  RegroupResult result_;
};

}  // namespace

std::size_t RegroupPlan::tensor_count() const {
  std::size_t count = 0;
  for (const RegroupFile& file : files) count += file.tensors.size();
  return count;
}

fs::path regrouped_path(const RegroupPlan& plan, const RegroupFile& file, const fs::path& out) {
  return plan.folder ? out / file.name : fs::absolute(out).lexically_normal().parent_path() / file.name;
}

std::uint64_t largest_regroup_piece(const RegroupPlan& plan) {
  std::uint64_t largest = 1 << 20;
  for (const RegroupFile& file : plan.files) {
    for (const RegroupTensor& tensor : file.tensors) {
      const std::uint64_t rows = std::min(tensor.made.rows(), rows_a_piece(tensor.made));
      largest = std::max(largest, rows * tensor.made.columns() * kBytesAnElement);
    }
  }
  return largest;
}

Space regroup_space(const RegroupPlan& plan, const fs::path& out) {
  Space space = space_for(plan.file_bytes, out);
  const fs::path partial = partial_folder(out);
  std::error_code error;
  const bool resumes = fs::exists(partial / Journal::kName, error);
  for (const RegroupFile& file : plan.files) {  // what an earlier run has written needs no more room
    struct stat s {};
    const bool written = ::stat((partial / file.name).c_str(), &s) == 0 ||
                         (resumes && ::stat(regrouped_path(plan, file, out).c_str(), &s) == 0);
    if (written)
      space.needed -= std::min<std::uint64_t>(space.needed, static_cast<std::uint64_t>(s.st_blocks) * 512);
  }
  return space;
}

void check_regroup_memory(const RegroupPlan& plan, const ConvertOptions& options) {
  if (const std::uint64_t piece = largest_regroup_piece(plan); piece > options.memory) {
    throw Error::refused(
        fmt::format("one piece of work takes {} bytes of memory, --memory allows {}", piece, options.memory));
  }
}

RegroupResult regroup(const RegroupPlan& plan, const fs::path& out, const ConvertOptions& options,
                      ProgressMode progress) {
  check_regroup_memory(plan, options);
  return Regrouper(plan, out, options, progress).run();
}

}  // namespace assay
