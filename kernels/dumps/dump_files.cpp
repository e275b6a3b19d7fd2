#include "kernels/dumps/dump_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "core/formats/safetensors.h"
#include "core/numeric/codec.h"
#include "core/system/error.h"
#include "core/system/text.h"

namespace assay::dumps {
namespace {

constexpr std::array<std::string_view, 5> kPickles = {".pt", ".pth", ".bin", ".pkl", ".pickle"};
constexpr std::uint64_t kNpyProbe = 4096;
constexpr std::string_view kPickleRemedy =
    "where you trust it, turn it into safetensors with the snippet \"from .pt\" of docs/dumps.md";

bool is_pickle(const fs::path& path) {
  return std::find(kPickles.begin(), kPickles.end(), path.extension().string()) != kPickles.end();
}
bool is_dump(const fs::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".safetensors" || extension == ".npy" || extension == ".npz";
}

std::string without_extension(const std::string& relative) {
  return fs::path(relative).replace_extension().generic_string();
}

// Names that say nothing: those writers give to the only tensor of a file.
bool is_generic(std::string_view name) {
  return name.empty() || name == "tensor" || name == "data" || name == "value" || name == "arr_0";
}

Error two_of_one(const Piece& piece) {
  const std::string place = describe(piece.place);
  return Error::input(fmt::format("two tensors are called so{}{}", place.empty() ? "" : " at ", place))
      .tensor(piece.name)
      .remedy("name the folders or files of several passes step_0, step_1 …, of ranks tp0, tp1 …");
}

}  // namespace

DumpFiles::DumpFiles(const fs::path& path) : path_(path) {
  std::error_code status;
  if (!fs::is_directory(path, status)) {
    if (is_pickle(path))
      throw Error::input("is a pickle: reading it would run its code")
          .in(path)
          .remedy(std::string(kPickleRemedy));
    if (fs::exists(path, status) && !is_dump(path))
      throw Error::input("is no dump we read")
          .in(path)
          .remedy("give a .safetensors, .npz, .npy, or a folder of them");
    add(path, path.filename().string());
  } else {
    std::size_t pickles = 0;
    for (const TreeEntry& entry : list_tree(path)) {
      if (entry.kind != TreeEntry::Kind::regular && entry.kind != TreeEntry::Kind::link) continue;
      pickles += is_pickle(entry.name) ? 1 : 0;
      if (is_dump(entry.name)) add(path / entry.name, entry.name);
    }
    if (files_.empty() && pickles > 0)
      throw Error::input(fmt::format("holds {} pickles and nothing else we read", pickles))
          .in(path)
          .remedy(std::string(kPickleRemedy));
    if (files_.empty())
      throw Error::input("holds no .safetensors, .npy or .npz")
          .in(path)
          .remedy("give the folder of the dump");
    if (pickles > 0) notes_.push_back(fmt::format("{} pickles were left aside", pickles));
  }
  settle_names();
}

void DumpFiles::add(const fs::path& path, const std::string& relative) {
  const std::string extension = path.extension().string();
  if (extension == ".npz") return add_npz(path, relative);
  return extension == ".npy" ? add_npy(path, relative) : add_safetensors(path, relative);
}

void DumpFiles::add_safetensors(const fs::path& path, const std::string& relative) {
  const File file = File::open(path);
  const safetensors::Header header = safetensors::read_header(file, safetensors::Reading::reference);
  std::vector<std::pair<std::string, Piece>> tensors;
  for (const safetensors::Tensor& tensor : header.tensors) {
    Piece piece;
    piece.type = tensor.type;
    piece.shape = tensor.shape;
    piece.offset = header.buffer_offset() + tensor.begin;
    piece.bytes = tensor.bytes();
    tensors.emplace_back(tensor.name, std::move(piece));
  }
  files_.push_back({path, nullptr, file.identity()});
  add_pieces(std::move(tensors), relative);
}

void DumpFiles::add_npy(const fs::path& path, const std::string& relative) {
  const File file = File::open(path);
  Piece piece;
  piece.npy = npy::read_header(file);
  piece.type = piece.npy->type;
  piece.shape = piece.npy->shape;
  files_.push_back({path, nullptr, file.identity()});
  std::vector<std::pair<std::string, Piece>> tensors;
  tensors.emplace_back("", std::move(piece));
  add_pieces(std::move(tensors), relative);
}

void DumpFiles::add_npz(const fs::path& path, const std::string& relative) {
  const auto archive = std::make_shared<const zip::Archive>(zip::Archive::open(path));
  std::vector<std::pair<std::string, Piece>> tensors;
  std::size_t others = 0;
  for (std::uint32_t i = 0; i < archive->members().size(); ++i) {
    const zip::Member& member = archive->members()[i];
    if (!member.name.ends_with(".npy")) {
      ++others;
      continue;
    }
    Piece piece;
    piece.member = i;
    try {
      std::vector<std::byte> prefix = archive->read(member, kNpyProbe);
      const std::uint64_t end = npy::header_end(prefix, member.bytes, path);
      if (end > prefix.size()) prefix = archive->read(member, end);
      piece.npy = npy::parse_header(prefix, member.bytes, path);
    } catch (Error& error) {
      throw std::move(error).tensor(member.name);
    }
    piece.type = piece.npy->type;
    piece.shape = piece.npy->shape;
    tensors.emplace_back(member.name.substr(0, member.name.size() - 4), std::move(piece));
  }
  if (others > 0) notes_.push_back(fmt::format("{}: {} members are no arrays", relative, others));
  files_.push_back({path, archive, File::open(path).identity()});
  add_pieces(std::move(tensors), relative);
}

// `tensors` of the last of files_, with the names they have there.
void DumpFiles::add_pieces(std::vector<std::pair<std::string, Piece>>&& tensors,
                           const std::string& relative) {
  const bool folder = fs::is_directory(path_);
  const ParsedName of_file = folder ? parse_path(without_extension(relative)) : ParsedName{};
  const bool alone = tensors.size() == 1;
  for (auto& [own, piece] : tensors) {
    const ParsedName of_tensor = parse_tensor_name(own);
    piece.file = static_cast<std::uint32_t>(files_.size() - 1);
    piece.place = of_file.place;
    for (const auto field :
         {&Place::step, &Place::dp, &Place::pp, &Place::cp, &Place::tp, &Place::ep, &Place::rank}) {
      if (of_tensor.place.*field) piece.place.*field = of_tensor.place.*field;
    }
    piece.name = of_tensor.name;
    if (alone && is_generic(piece.name))
      piece.name = folder ? of_file.name : fs::path(relative).stem().string();
    if (piece.name.empty()) piece.name = "tensor";
    pieces_.push_back(std::move(piece));
    stems_.push_back(of_file.name);
  }
}

// Where two files have a tensor of one name at one place, they are told apart by the names of their files.
void DumpFiles::settle_names() {
  using Spot = std::tuple<std::string, Place>;
  std::map<Spot, std::size_t> seen;
  for (const Piece& piece : pieces_) ++seen[{piece.name, piece.place}];
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    Piece& piece = pieces_[i];
    if (seen[{piece.name, piece.place}] > 1 && !stems_[i].empty() && stems_[i] != piece.name)
      piece.name = fmt::format("{}.{}", stems_[i], piece.name);
  }
  stems_.clear();
  std::sort(pieces_.begin(), pieces_.end(), [](const Piece& a, const Piece& b) {
    return std::tie(a.name, a.place) < std::tie(b.name, b.place);
  });
  const auto twice = std::adjacent_find(pieces_.begin(), pieces_.end(), [](const Piece& a, const Piece& b) {
    return a.name == b.name && a.place == b.place;
  });
  if (twice != pieces_.end()) throw two_of_one(*twice).in(path_);
}

std::vector<std::byte> DumpFiles::read_bytes(const Piece& piece) const {
  const DumpFile& at = files_[piece.file];
  if (at.archive) {
    const zip::Member& member = at.archive->members()[piece.member];
    std::vector<std::byte> whole = at.archive->read(member);
    whole.erase(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(piece.npy->data_offset));
    return npy::in_c_order(*piece.npy, std::move(whole));
  }
  const File file = File::open(at.path);
  if (file.identity() != *at.identity)
    throw Error::input("the file changed while it was compared").in(at.path).remedy("compare again");
  std::vector<std::byte> bytes(piece.npy ? piece.npy->bytes : piece.bytes);
  file.read_exactly(piece.npy ? piece.npy->data_offset : piece.offset, bytes);
  return piece.npy ? npy::in_c_order(*piece.npy, std::move(bytes)) : bytes;
}

std::vector<double> DumpFiles::read(const Piece& piece) const {
  const std::vector<std::byte> bytes = read_bytes(piece);
  std::vector<double> values(bytes.size() / info(piece.type).block_bytes * values_per_block(piece.type));
  decode(piece.type, bytes, values.data());
  return values;
}

}  // namespace assay::dumps
