// An array that ends where a page ends, before one that nothing may touch: who reads or writes behind it dies,
// with sanitizers or without.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <new>
#include <span>
#include <type_traits>

namespace assay::test {

template <class T>
class Fenced {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  explicit Fenced(std::size_t size) : size_(size) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::size_t room = (size * sizeof(T) + page - 1) / page * page;
    mapped_ = room + page;
    void* memory = ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    begin_ = static_cast<std::byte*>(memory);
    ::mprotect(begin_ + room, page, PROT_NONE);
    data_ = reinterpret_cast<T*>(begin_ + room - size * sizeof(T));
  }
  explicit Fenced(std::span<const T> values) : Fenced(values.size()) {
    if (!values.empty()) std::memcpy(data_, values.data(), values.size_bytes());
  }
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;
  ~Fenced() { ::munmap(begin_, mapped_); }

  T* data() { return data_; }
  std::span<T> all() { return {data_, size_}; }

 private:
  std::byte* begin_ = nullptr;
  T* data_ = nullptr;
  std::size_t size_, mapped_ = 0;
};

}  // namespace assay::test
