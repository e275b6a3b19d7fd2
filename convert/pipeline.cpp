#include "convert/pipeline.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>

#include "convert/copy_range.h"
#include "convert/encoder.h"
#include "convert/plausible.h"
#include "convert/scale_map.h"
#include "core/numeric/codec_simd.h"
#include "core/system/error.h"
#include "core/system/threads.h"

namespace assay {
namespace {

constexpr std::uint64_t kPieceElements = 1 << 17;  // what a piece passes through stays in a core's cache
constexpr std::uint64_t kCopyPiece = 64 << 20;
constexpr std::uint64_t kCutPiece = 4 << 20;
constexpr std::uint64_t kBytesAnElement = 20;  // stored, decoded, encoded, decoded again, and scales

// Rows that one piece of work takes: whole blocks, about kPieceElements.
std::uint64_t rows_a_piece(const LogicalTensor& tensor, std::uint64_t block_rows) {
  const std::uint64_t rows =
      std::max({std::uint64_t{1}, kPieceElements / std::max<std::uint64_t>(1, tensor.columns),
                tensor.rows_together()});
  return std::max(block_rows, rows / block_rows * block_rows);
}

std::uint64_t rows_a_piece(const ConversionPlan& plan, const Work& work) {
  const bool together = work.action == WorkAction::quantize;
  return rows_a_piece(plan.stored.tensors[work.tensor], together ? plan.encoder->rows_together() : 1);
}

// Buffers of a piece are freed and asked for again thousands of times: they stay with the process, where the
// kernel need not clear them anew each time.
void keep_freed_memory() {
  ::mallopt(M_MMAP_THRESHOLD, 64 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 256 << 20);
}

class ShardWriter {
 public:
  ShardWriter(const PipelineContext& context, const OutputShard& shard, ShardSink& sink)
      : context_(context), plan_(context.plan), shard_(shard), sink_(sink) {}

  std::vector<WorkError> run() {
    for (const OutputTensor& output : shard_.tensors) {
      if (output.source == OutputTensor::Source::gathered)
        queue_gathering(output);
      else if (output.source != OutputTensor::Source::stored)
        made_[output.from].push_back(&output);
    }
    if (sink_.whole() != nullptr)
      queue_copies();
    else
      queue_cut_copies();
    for (const auto& [work, outputs] : made_) queue_work(work, outputs);
    run_pieces();
    std::vector<WorkError> errors;
    for (const auto& [work, sums] : sums_) {
      WorkError& error = errors.emplace_back(WorkError{work, {}});
      for (const ErrorSums& piece : sums) error.sums.add(piece);
    }
    return errors;
  }

 private:
  using Outputs = std::vector<const OutputTensor*>;

  const LogicalTensor& tensor_of(std::uint32_t work) const {
    return plan_.stored.tensors[plan_.works[work].tensor];
  }

  void run_pieces() {
    const int jobs = jobs_within_memory(plan_, context_.options);
    for (auto* pieces : {&first_pass_, &pieces_}) {
      parallel_for(jobs, pieces->size(), [&](std::size_t i) {
        if (interrupted()) throw Interrupted{};
        (*pieces)[i]();
      });
    }
  }

  // Neighbours in both files are copied as one run.
  void queue_copies() {
    std::uint64_t from = 0, to = 0, bytes = 0;
    std::uint32_t file = 0;
    const auto flush = [&] {
      for (std::uint64_t done = 0; done < bytes; done += kCopyPiece) {
        const std::uint64_t size = std::min(kCopyPiece, bytes - done);
        pieces_.push_back([this, file, size, source = from + done, target = to + done] {
          copy_range(context_.source.file(file), source, *sink_.whole(), target, size);
          context_.progress.add(size);
        });
      }
      bytes = 0;
    };
    for (const OutputTensor& output : shard_.tensors) {
      if (output.source != OutputTensor::Source::stored) continue;
      const CheckpointTensor& stored = plan_.checkpoint.tensors[output.from];
      const bool continues =
          bytes > 0 && stored.file == file && stored.offset == from + bytes && output.offset == to + bytes;
      if (!continues) {
        flush();
        file = stored.file;
        from = stored.offset;
        to = output.offset;
      }
      bytes += output.bytes;
    }
    flush();
  }

  // What is dealt out over ranks passes through memory, once for all of them.
  void queue_cut_copies() {
    for (const OutputTensor& output : shard_.tensors) {
      if (output.source != OutputTensor::Source::stored) continue;
      const CheckpointTensor& stored = plan_.checkpoint.tensors[output.from];
      for (std::uint64_t at = 0; at < output.bytes; at += kCutPiece) {
        const std::uint64_t size = std::min(kCutPiece, output.bytes - at);
        pieces_.push_back([this, &stored, &output, at, size] {
          std::vector<std::byte> bytes(size);
          context_.source.read(stored, at, bytes);
          sink_.write(output, at, bytes);
          context_.progress.add(size);
        });
      }
    }
  }

  void queue_gathering(const OutputTensor& output) {
    const TensorCut& cut = plan_.gathered[output.from];
    for (std::uint64_t at = 0; at < output.bytes; at += kCutPiece) {
      const std::uint64_t size = std::min(kCutPiece, output.bytes - at);
      pieces_.push_back([this, &cut, &output, at, size] {
        std::vector<std::byte> bytes(size);
        read_gathered(context_.source, cut, at, bytes);
        sink_.write(output, at, bytes);
        context_.progress.add(size);
      });
    }
  }

  static const OutputTensor* find(const Outputs& outputs, OutputTensor::Source source) {
    for (const OutputTensor* output : outputs) {
      if (output->source == source) return output;
    }
    return nullptr;
  }

  void queue_work(std::uint32_t work, const Outputs& outputs) {
    const LogicalTensor& tensor = tensor_of(work);
    const OutputTensor* scales = find(outputs, OutputTensor::Source::scales);
    if (plan_.works[work].action == WorkAction::reblock) {
      pieces_.push_back([this, &tensor, scales] { reblock_scales(tensor, *scales); });
      return;
    }
    const std::uint64_t step = rows_a_piece(plan_, plan_.works[work]);
    const std::uint64_t count = LogicalTensor::ceil_div(tensor.all_rows(), step);
    if (plan_.works[work].action == WorkAction::recode) return queue_recoding(tensor, outputs, step, count);
    std::vector<ErrorSums>& sums = sums_[work];
    sums.resize(count);
    if (plan_.works[work].action == WorkAction::cast) {
      const OutputTensor* values = find(outputs, OutputTensor::Source::values);
      for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t first = i * step, rows = std::min(step, tensor.all_rows() - first);
        pieces_.push_back([=, this, &tensor, &sums] { cast(tensor, first, rows, *values, sums[i]); });
      }
      return;
    }
    auto& amax = whole_amax_[work];
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t first = i * step, rows = std::min(step, tensor.all_rows() - first);
      if (plan_.encoder->needs_whole_amax())
        first_pass_.push_back([=, this, &tensor, &amax] { raise_amax(tensor, first, rows, amax); });
      pieces_.push_back([=, this, &tensor, &outputs, &sums, &amax] {
        quantize(tensor, first, rows, outputs, amax.load(), sums[i]);
      });
    }
  }

  // --- one piece
  // ----------------------------------------------------------------------------------------------

  std::vector<float> read(const LogicalTensor& tensor, std::uint64_t first, std::uint64_t rows) const {
    std::vector<float> values(rows * tensor.columns);
    StoredReader(context_.source, tensor).decode_rows(first, rows, values);
    return values;
  }

  float check_values(const LogicalTensor& tensor, std::span<const float> values) const {
    float amax = 0;
    if (!values.empty() && !block_amax(values, 1, values.size(), 1, values.size(), std::span(&amax, 1))) {
      throw Error::refused("a NaN or infinite value").tensor(tensor.name).remedy("the source is damaged");
    }
    check_plausible(tensor, amax, context_.options);
    return amax;
  }

  void cast(const LogicalTensor& tensor, std::uint64_t first, std::uint64_t rows, const OutputTensor& output,
            ErrorSums& sums) {
    const std::vector<float> before = read(tensor, first, rows);
    check_values(tensor, before);
    const std::uint64_t element = info(output.type).block_bytes;
    std::vector<std::byte> stored(before.size() * element);
    simd::encode(output.type, before, Overflow::special, stored.data());
    std::vector<float> after(before.size());
    simd::decode(output.type, stored, after.data());
    float amax = 0;
    if (!after.empty() && !block_amax(after, 1, after.size(), 1, after.size(), std::span(&amax, 1)))
      throw Error::refused(fmt::format("a value is too large for {}", name(output.type))).tensor(tensor.name);
    sums.add(before, after);
    sink_.write(output, first * tensor.columns * element, stored);
    context_.progress.add(stored.size());
  }

  void raise_amax(const LogicalTensor& tensor, std::uint64_t first, std::uint64_t rows,
                  std::atomic<float>& amax) {
    const float mine = check_values(tensor, read(tensor, first, rows));
    for (float seen = amax.load(); seen < mine && !amax.compare_exchange_weak(seen, mine);) {
    }
  }

  void quantize(const LogicalTensor& tensor, std::uint64_t first, std::uint64_t rows, const Outputs& outputs,
                float whole_amax, ErrorSums& sums) {
    const std::vector<float> before = read(tensor, first, rows);
    check_values(tensor, before);
    const EncodedRows made = plan_.encoder->encode({tensor, first, rows, before, whole_amax, context_.given});
    for (const OutputTensor* output : outputs) {
      const EncodedRows::Bytes& part = made.parts[output->part];
      if (!part.bytes.empty()) sink_.write(*output, part.at, part.bytes);
      context_.progress.add(part.bytes.size());
    }
    sums.add(before, made.after);
    sums.clamped += made.clamped;
    sums.zero_blocks += made.zero_blocks;
  }

  void queue_recoding(const LogicalTensor& tensor, const Outputs& outputs, std::uint64_t step,
                      std::uint64_t count) {
    const OutputTensor *codes = find(outputs, OutputTensor::Source::codes),
                       *scales = find(outputs, OutputTensor::Source::scales);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t first = i * step * tensor.columns;
      const std::uint64_t size = std::min(step * tensor.columns, tensor.elements() - first);
      pieces_.push_back([=, this, &tensor] { recode(tensor, first, size, *codes); });
    }
    pieces_.push_back([=, this, &tensor] { double_scales(tensor, *scales); });
  }

  // The exponent's bias is one more in fnuz, so that twice the scale makes up for it. Its NaN is the code of
  // -0; the codes of NaN and infinity would be numbers.
  void recode(const LogicalTensor& tensor, std::uint64_t first, std::uint64_t size,
              const OutputTensor& output) {
    std::vector<std::byte> codes(size);
    context_.source.read(plan_.checkpoint.tensors[tensor.codes], first, codes);
    const auto largest = static_cast<std::uint8_t>(float_format(tensor.form.codes)->max_code());
    std::uint32_t special = 0;
    for (std::byte& code : codes) {
      special += (std::to_integer<std::uint8_t>(code) & 0x7F) > largest ? 1 : 0;
      code = code == std::byte{0x80} ? std::byte{0} : code;
    }
    if (special > 0)
      throw Error::refused("a NaN or infinite value").tensor(tensor.name).remedy("the source is damaged");
    sink_.write(output, first, codes);
    context_.progress.add(size);
  }

  void double_scales(const LogicalTensor& tensor, const OutputTensor& output) {
    const std::uint64_t rows = tensor.slices * tensor.scale_rows();
    std::vector<float> scales(rows * tensor.scale_columns());
    StoredReader(context_.source, tensor).decode_scales(0, rows, scales);
    for (float& scale : scales) {
      scale *= 2;
      if (!(scale >= 0) || std::isinf(scale))
        throw Error::refused("a scale is NaN, infinite, negative or too large to double").tensor(tensor.name);
    }
    sink_.write(output, 0, std::as_bytes(std::span(scales)));
    context_.progress.add(output.bytes);
  }

  void reblock_scales(const LogicalTensor& tensor, const OutputTensor& output) {
    const CheckpointTensor& stored = plan_.checkpoint.tensors[*tensor.scale];
    const ScaleMap rows{tensor.rows, tensor.form.block_rows, plan_.spec.block_rows};
    const ScaleMap columns{tensor.columns, tensor.form.block_columns, plan_.spec.block_columns};
    const std::uint64_t size = info(stored.type).block_bytes;
    std::vector<std::byte> old(stored.bytes);
    context_.source.read(stored, 0, old);
    std::vector<float> values(old.size() / size);
    simd::decode(tensor.form.scales, old, values.data());
    for (const float scale : values) {
      if (!(scale >= 0) || std::isinf(scale))
        throw Error::refused("a scale is NaN, infinite or negative").tensor(stored.name);
    }
    std::vector<std::byte> row(columns.new_count() * size);
    std::uint64_t target = 0;
    for (std::uint64_t slice = 0; slice < tensor.slices; ++slice) {
      for (std::uint64_t i = 0; i < rows.new_count(); ++i, target += row.size()) {
        const std::uint64_t from = (slice * rows.old_count() + rows.first(i)) * columns.old_count();
        for (std::uint64_t j = 0; j < columns.new_count(); ++j)
          std::memcpy(&row[j * size], &old[(from + columns.first(j)) * size], size);
        sink_.write(output, target, row);
      }
    }
    context_.progress.add(output.bytes);
  }

  const PipelineContext& context_;
  const ConversionPlan& plan_;
  const OutputShard& shard_;
  ShardSink& sink_;
  std::map<std::uint32_t, Outputs> made_;
  std::map<std::uint32_t, std::vector<ErrorSums>> sums_;
  std::map<std::uint32_t, std::atomic<float>> whole_amax_;
  std::vector<std::function<void()>> first_pass_, pieces_;
};

}  // namespace

std::vector<WorkError> write_shard(const PipelineContext& context, const OutputShard& shard,
                                   ShardSink& sink) {
  keep_freed_memory();
  return ShardWriter(context, shard, sink).run();
}

void read_gathered(const CheckpointReader& source, const TensorCut& cut, std::uint64_t at,
                   std::span<std::byte> bytes) {
  gather(cut, at, bytes, [&](std::uint32_t file, std::uint64_t offset, std::span<std::byte> part) {
    source.file(file).read_exactly(offset, part);
  });
}

void check_merges(const PipelineContext& context) {
  std::uint64_t disagreeing = 0, blocks = 0;
  std::string example;
  for (const Work& work : context.plan.works) {
    const LogicalTensor& tensor = context.plan.stored.tensors[work.tensor];
    if (work.action != WorkAction::reblock) continue;
    const ScaleMap rows{tensor.rows, tensor.form.block_rows, context.plan.spec.block_rows};
    const ScaleMap columns{tensor.columns, tensor.form.block_columns, context.plan.spec.block_columns};
    if (!rows.merges() && !columns.merges()) continue;
    std::vector<float> old(tensor.slices * tensor.scale_rows() * tensor.scale_columns());
    StoredReader(context.source, tensor).decode_scales(0, tensor.slices * tensor.scale_rows(), old);
    for (std::uint64_t block = 0; block < tensor.slices * rows.new_count(); ++block) {
      const std::uint64_t top = block / rows.new_count() * rows.old_count(), i = block % rows.new_count();
      for (std::uint64_t j = 0; j < columns.new_count(); ++j, ++blocks) {
        const float first = old[(top + rows.first(i)) * columns.old_count() + columns.first(j)];
        bool agree = true;
        for (std::uint64_t r = rows.first(i); r <= rows.last(i); ++r) {
          for (std::uint64_t c = columns.first(j); c <= columns.last(j); ++c)
            agree &= old[(top + r) * columns.old_count() + c] == first;
        }
        if (!agree && disagreeing++ == 0) example = tensor.name;
      }
    }
  }
  if (disagreeing == 0) return;
  throw Error::refused(
      fmt::format("{} of {} larger blocks would join blocks whose scales differ", disagreeing, blocks))
      .tensor(example)
      .remedy("merging is exact only where scales agree; quantize anew with --to fp8:block=… instead");
}

std::uint64_t largest_piece(const ConversionPlan& plan) {
  std::uint64_t largest = 1 << 20;
  for (const Work& work : plan.works) {
    const LogicalTensor& tensor = plan.stored.tensors[work.tensor];
    std::uint64_t bytes = 0;
    if (work.action == WorkAction::reblock) {
      bytes = 4 * plan.checkpoint.tensors[*tensor.scale].bytes;
    } else if (work.action != WorkAction::copy) {
      const std::uint64_t rows = std::min(tensor.all_rows(), rows_a_piece(plan, work));
      bytes = rows * tensor.columns * kBytesAnElement;
    }
    largest = std::max(largest, bytes);
  }
  return largest;
}

int jobs_within_memory(const ConversionPlan& plan, const ConvertOptions& options) {
  const std::uint64_t piece = largest_piece(plan);
  if (piece > options.memory) {
    throw Error::refused(
        fmt::format("one piece of work takes {} bytes of memory, --memory allows {}", piece, options.memory));
  }
  return static_cast<int>(
      std::clamp<std::uint64_t>(options.memory / piece, 1, static_cast<std::uint64_t>(options.jobs)));
}

}  // namespace assay
