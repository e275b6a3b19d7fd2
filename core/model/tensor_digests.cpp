#include "core/model/tensor_digests.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "core/formats/stream_digest.h"
#include "core/numeric/codec_simd.h"
#include "core/system/error.h"
#include "core/system/threads.h"

namespace assay {
namespace {

constexpr std::uint64_t kChunk = 4ull << 20;  // read at once; a multiple of every element

std::uint64_t element_bytes(ElementType type) {
  return info(type).block_bytes;
}

// The pieces of one share, fed with the bytes of their places in order.
class ShareDigest {
 public:
  explicit ShareDigest(const HeldTensor& tensor) : tensor_(tensor), digest_(DigestKind::sha256, 0) {}

  bool waits_for(std::uint32_t place) const {
    return next_ < tensor_.pieces.size() && tensor_.pieces[next_].place == place;
  }
  // `at`: of the bytes in the stored tensor; all its bytes come in order. Sizes are those of the type held.
  void feed(std::uint64_t at, std::span<const std::byte> bytes, std::uint64_t held, std::uint64_t stored) {
    const HeldPiece& piece = tensor_.pieces[next_];
    if (at == 0) cut_ = resized(piece.cut, held, stored);
    scatter(cut_, cut_.parts[0], at, bytes,
            [&](std::uint64_t, std::span<const std::byte> mine) { digest_.update(mine); });
  }
  void finish_piece(std::uint64_t held, std::uint64_t stored) {
    static constexpr std::array<std::byte, 65536> kZeros{};
    for (std::uint64_t left = tensor_.pieces[next_].zeros / stored * held; left > 0;) {
      const std::uint64_t some = std::min<std::uint64_t>(left, kZeros.size());
      digest_.update(std::span(kZeros).first(some));
      left -= some;
    }
    ++next_;
  }
  std::string finish() { return digest_.finish().hex(); }

 private:
  // The same cut of values that take `held` bytes in place of `stored`.
  static TensorCut resized(TensorCut cut, std::uint64_t held, std::uint64_t stored) {
    const auto resize = [&](std::uint64_t& bytes) { bytes = bytes / stored * held; };
    resize(cut.row_bytes);
    for (RankPart& part : cut.parts) {
      resize(part.row_bytes);
      for (PartRange& range : part.ranges) {
        resize(range.begin);
        resize(range.end);
      }
    }
    return cut;
  }

  const HeldTensor& tensor_;
  StreamDigest digest_;
  std::size_t next_ = 0;
  TensorCut cut_;
};

// Places in the order in which the shares ask for them: every share's own order is a part of it.
std::vector<std::uint32_t> places_of(const HeldShares& shares) {
  std::vector<std::uint32_t> places;
  std::vector<std::size_t> next(shares.size(), 0);
  for (bool more = true; more;) {
    more = false;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      if (next[i] == shares[i].pieces.size()) continue;
      const std::uint32_t place = shares[i].pieces[next[i]].place;
      places.push_back(place);
      for (std::size_t k = 0; k < shares.size(); ++k)
        if (next[k] < shares[k].pieces.size() && shares[k].pieces[next[k]].place == place) ++next[k];
      more = true;
      break;
    }
  }
  return places;
}

class Digester {
 public:
  Digester(const OpenedModel& model, Progress& progress) : model_(model), progress_(progress) {}

  std::vector<TensorDigests::Entry> digest(const HeldShares& shares) {
    std::vector<ShareDigest> digests;
    for (const HeldTensor& share : shares) digests.emplace_back(share);
    for (const std::uint32_t place : places_of(shares)) read(place, shares[0].type, digests);
    std::vector<TensorDigests::Entry> entries;
    if (interrupted()) return entries;
    for (std::size_t i = 0; i < shares.size(); ++i)
      entries.push_back(
          {shares[i].name, shares[i].type, shares[i].shape, shares[i].ranks, digests[i].finish()});
    return entries;
  }
  std::uint64_t bytes_read() const { return bytes_read_; }

 private:
  void read(std::uint32_t place, ElementType held, std::vector<ShareDigest>& digests) {
    const CheckpointTensor& tensor = model_.checkpoint.tensors[place];
    const bool cast = held != tensor.type;
    const std::uint64_t from = cast ? element_bytes(tensor.type) : 1, to = cast ? element_bytes(held) : 1;
    std::vector<ShareDigest*> waiting;
    for (ShareDigest& digest : digests)
      if (digest.waits_for(place)) waiting.push_back(&digest);
    std::vector<std::byte> bytes(std::min(kChunk, tensor.bytes)), other;
    std::vector<float> values;
    for (std::uint64_t at = 0; at < tensor.bytes && !interrupted(); at += kChunk) {
      const auto chunk = std::span(bytes).first(std::min(kChunk, tensor.bytes - at));
      model_.reader.read(tensor, at, chunk);
      bytes_read_ += chunk.size();
      progress_.add(chunk.size());
      std::span<const std::byte> given = chunk;
      if (cast) {
        values.resize(chunk.size() / from);
        other.resize(values.size() * to);
        simd::decode(tensor.type, chunk, values.data());
        simd::encode(held, values, Overflow::special, other.data());
        given = other;
      }
      for (ShareDigest* digest : waiting) digest->feed(at / from * to, given, to, from);
    }
    for (ShareDigest* digest : waiting) digest->finish_piece(to, from);
  }

  const OpenedModel& model_;
  Progress& progress_;
  std::atomic<std::uint64_t> bytes_read_{0};
};

std::uint64_t bytes_of(const OpenedModel& model, const HeldShares& shares) {
  std::uint64_t bytes = 0;
  for (const std::uint32_t place : places_of(shares)) bytes += model.checkpoint.tensors[place].bytes;
  return bytes;
}

}  // namespace

std::string_view name(HeldNames names) {
  constexpr std::string_view kNames[] = {"stored", "vllm", "sglang"};
  return kNames[static_cast<std::size_t>(names)];
}

TensorDigests tensor_digests(const OpenedModel& model, const HeldAs& as, int jobs, ProgressMode progress) {
  HeldTensors held = held_tensors(model, as);
  std::vector<std::pair<std::uint64_t, std::size_t>> order;  // the largest first
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < held.tensors.size(); ++i) {
    order.emplace_back(bytes_of(model, held.tensors[i]), i);
    total += order.back().first;
  }
  std::sort(order.rbegin(), order.rend());

  TensorDigests made;
  std::vector<std::vector<TensorDigests::Entry>> entries(held.tensors.size());
  {
    Progress line(progress, "hashing", total);
    Digester digester(model, line);
    parallel_for(jobs, order.size(), [&](std::size_t i) {
      if (!interrupted()) entries[order[i].second] = digester.digest(held.tensors[order[i].second]);
    });
    made.bytes_read = digester.bytes_read();
  }
  model.reader.check_unchanged();
  made.interrupted = interrupted();
  for (auto& of_name : entries) std::move(of_name.begin(), of_name.end(), std::back_inserter(made.tensors));
  made.not_told = std::move(held.not_told);
  return made;
}

TensorList as_list(const TensorDigests& digests, const HeldAs& as) {
  TensorList list{.tensors = {},
                  .unlisted = {},
                  .contradicted = {},
                  .engine = std::string(name(as.names)),
                  .ranks = as.grid.tp};
  for (const TensorDigests::Entry& entry : digests.tensors)
    list.tensors.push_back({entry.name, entry.ranks, entry.sha256});
  for (const NotHeld& one : digests.not_told) list.unlisted.push_back({one.name, one.why});
  return list;
}

}  // namespace assay
