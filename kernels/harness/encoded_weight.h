// A weight in any stored form that has an encoder (core/model/formats), made in memory and decoded from it as from
// a checkpoint: what `convert --to` would write, and `run` read.
#pragma once

#include <memory>
#include <span>

#include "core/model/stored_form.h"
#include "core/model/stored_reader.h"

namespace assay {

class WeightEncoder;

class EncodedWeight {
 public:
  // Throws Error::usage where the form cannot hold such a matrix.
  EncodedWeight(const WeightEncoder& encoder, std::span<const float> values, std::uint64_t rows,
                std::uint64_t columns);
  EncodedWeight(const EncodedWeight&) = delete;
  EncodedWeight& operator=(const EncodedWeight&) = delete;

  const LogicalTensor& tensor() const { return stored_.tensors.front(); }
  const StoredReader& reader() const { return *stored_reader_; }

 private:
  Checkpoint checkpoint_;
  StoredTensors stored_;
  std::unique_ptr<CheckpointReader> reader_;
  std::unique_ptr<StoredReader> stored_reader_;
};

}  // namespace assay
