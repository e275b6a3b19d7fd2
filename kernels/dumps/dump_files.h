// A dump as it lies on disk: one .safetensors, .npz or .npy, or a folder of them in any depth.
//
// Opening reads headers only; values are read a tensor at a time. In a folder a tensor is called as it calls
// itself, or, of a file that holds one array, as the file and the folders above it are; what these say of
// steps and ranks is taken out (dump_name.h). Pickles (.pt, .pth, .bin, .pkl) are not read: unpickling runs
// code.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/formats/npy.h"
#include "core/formats/zip.h"
#include "core/numeric/element_type.h"
#include "core/system/file.h"
#include "kernels/dumps/dump_name.h"

namespace assay::dumps {

// A tensor of one file.
struct Piece {
  std::string name;  // places taken out
  Place place;
  ElementType type = ElementType::F32;
  std::vector<std::uint64_t> shape;
  std::uint32_t file = 0;
  std::uint64_t offset = 0, bytes = 0;  // of safetensors
  std::optional<npy::Header> npy;       // of .npy, and of a member of .npz
  std::uint32_t member = 0;
};

struct DumpFile {
  fs::path path;
  std::shared_ptr<const zip::Archive> archive;  // of .npz
  std::optional<FileIdentity> identity;
};

class DumpFiles {
 public:
  explicit DumpFiles(const fs::path& path);

  const fs::path& path() const { return path_; }
  const std::vector<Piece>& pieces() const { return pieces_; }  // by name, then place
  const std::vector<DumpFile>& files() const { return files_; }
  const std::vector<std::string>& notes() const { return notes_; }
  std::vector<double> read(const Piece& piece) const;  // in C order

 private:
  void add(const fs::path& path, const std::string& relative);
  void add_safetensors(const fs::path& path, const std::string& relative);
  void add_npy(const fs::path& path, const std::string& relative);
  void add_npz(const fs::path& path, const std::string& relative);
  void add_pieces(std::vector<std::pair<std::string, Piece>>&& tensors, const std::string& relative);
  void settle_names();
  std::vector<std::byte> read_bytes(const Piece& piece) const;

  fs::path path_;
  std::vector<DumpFile> files_;
  std::vector<Piece> pieces_;
  std::vector<std::string> stems_;  // of each piece: its file, for names that would clash
  std::vector<std::string> notes_;
};

}  // namespace assay::dumps
