#include "core/formats/hash/lane.h"

namespace assay {

void Lane::start(std::size_t index, HashJob given) {
  const HashJob& job = job_.emplace(std::move(given));
  index_ = index;
  result_ = {};
  result_.digest.kind = job.kind;
  ended_ = false;
  message_ = {};
  try {
    reader_.open(job.path, job.span.begin, job.span.end);
    result_.identity = reader_.file().identity();
    if (job.kind != DigestKind::sha256 && !is_made_by_listener(job.kind))
      apart_.emplace(job.kind, result_.identity.size);
  } catch (const Error& error) {
    fail(error);
  }
}

Lane::Step Lane::prepare(Progress* progress, bool idle_cores) {
  try {
    while (!ended_ && message_.blocks() == 0) {
      std::span<const std::byte> chunk;
      switch (reader_.next(chunk, idle_cores, room())) {
        case FileReader::Status::waiting: return Step::waiting;
        case FileReader::Status::end: finish(); break;
        case FileReader::Status::chunk:
          accept(chunk);
          if (progress != nullptr) progress->add(chunk.size());
          break;
      }
    }
  } catch (const Error& error) {
    fail(error);
  }
  return ended_ ? Step::ended : Step::blocks;
}

// Only where nobody but the sink keeps or hashes the bytes: it may move them.
std::span<std::byte> Lane::room() const {
  return job_->sink != nullptr && is_made_by_listener(job_->kind) ? job_->sink->room()
                                                                  : std::span<std::byte>();
}

void Lane::accept(std::span<const std::byte> chunk) {
  result_.bytes += chunk.size();
  if (job_->sink != nullptr) job_->sink->consume(chunk);
  if (apart_)
    apart_->update(chunk);
  else if (!is_made_by_listener(job_->kind))
    message_.accept(chunk);
}

void Lane::finish() {
  const FileIdentity now = reader_.file().identity_now();
  const bool whole = result_.bytes == reader_.bytes();
  result_.changed = !whole || now != result_.identity;
  if (whole && job_->sink != nullptr) job_->sink->finish();
  if (apart_) {
    result_.digest = apart_->finish();
  } else if (!is_made_by_listener(job_->kind)) {
    result_.digest.bytes = message_.digest();
  }
  result_.complete = true;
  ended_ = true;
}

void Lane::fail(Error error) {
  if (error.file().empty()) error.in(job_->path);
  result_.error = std::move(error);
  message_ = {};
  ended_ = true;
}

HashResult Lane::take_result() {
  reader_.close();
  apart_.reset();
  job_.reset();
  return std::move(result_);
}

}  // namespace assay
