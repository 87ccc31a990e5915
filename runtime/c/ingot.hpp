// The loader for C++17: owners for what `ingot.h` makes. No exceptions, no run-time type information, nothing to link but `ingot.c`.
//
// In, out, not done here: as `ingot.h`. A function that can fail gives an `ingot::error`, which is true where something failed.
#ifndef INGOT_HPP
#define INGOT_HPP

#include <cstddef>
#include <cstdint>
#include <memory>

#include "ingot.h"

namespace ingot {

using options = ingot_options;
inline options default_options() { return INGOT_OPTIONS; }

struct [[nodiscard]] error : ingot_error {
  error() : ingot_error{} {}
  explicit operator bool() const { return kind != INGOT_OK; }
};

// Elements that somebody else owns.
template <class T>
class span {
 public:
  span() = default;
  span(T *data, std::size_t size) : data_(data), size_(size) {}
  T *data() const { return data_; }
  std::size_t size() const { return size_; }
  T *begin() const { return data_; }
  T *end() const { return data_ + size_; }
  T &operator[](std::size_t index) const { return data_[index]; }

 private:
  T *data_ = nullptr;
  std::size_t size_ = 0;
};

// An input or output of a session: empty where there is none.
class tensor {
 public:
  tensor() = default;
  explicit tensor(const ingot_tensor *found) : found_(found) {}
  explicit operator bool() const { return found_ != nullptr; }
  span<const std::int64_t> shape() const { return found_ ? span<const std::int64_t>{found_->shape, found_->rank} : span<const std::int64_t>{}; }
  // Of a state that the session keeps: rows that it has room for along `axis`, as if its shape had that size there; else 0.
  std::int64_t capacity() const { return found_ ? found_->capacity : 0; }
  std::uint32_t axis() const { return found_ ? found_->axis : 0; }
  // The elements; T has to be as wide as the element type that the bundle declares.
  template <class T>
  span<T> elements() const {
    return found_ ? span<T>{static_cast<T *>(found_->data), static_cast<std::size_t>(found_->size_bytes / sizeof(T))} : span<T>{};
  }

 private:
  const ingot_tensor *found_ = nullptr;
};

class bundle {
 public:
  error load(const char *path, const options &chosen = default_options()) {
    error failed;
    ingot_bundle *made = nullptr;
    ingot_load(path, &chosen, &made, &failed);
    owner_.reset(made);
    return failed;
  }
  error load(span<const unsigned char> memory, const options &chosen = default_options()) {
    error failed;
    ingot_bundle *made = nullptr;
    ingot_load_memory(memory.data(), memory.size(), &chosen, &made, &failed);
    owner_.reset(made);
    return failed;
  }
  error selftest(ingot_proof &proof, const options &chosen = default_options()) {
    error failed;
    ingot_selftest(owner_.get(), &chosen, &proof, &failed);
    return failed;
  }
  const ingot_bundle_info &info() const { return *ingot_describe(owner_.get()); }
  ingot_bundle *get() const { return owner_.get(); }

 private:
  struct unload {
    void operator()(ingot_bundle *old) const { ingot_unload(old); }
  };
  std::unique_ptr<ingot_bundle, unload> owner_;
};

// A session must end before its bundle: declare it behind.
class session {
 public:
  error open(const bundle &loaded, const options &chosen = default_options()) {
    error failed;
    ingot_session *made = nullptr;
    ingot_open(loaded.get(), &chosen, &made, &failed);
    owner_.reset(made);
    return failed;
  }
  // Opens one that begins with the states of `like`, and takes turns with it: it shares its threads and workspace.
  error open(const bundle &loaded, const session &like, options chosen = default_options()) {
    chosen.like = like.owner_.get();
    return open(loaded, chosen);
  }
  // Of what the states have, keeps the first rows (-1: all) and of the batch these entries (empty: each its own).
  error keep(std::int64_t length, span<const std::int64_t> entries = {}) {
    error failed;
    ingot_keep(owner_.get(), length, entries.data(), entries.size(), &failed);
    return failed;
  }
  error set_input(std::uint32_t index, const void *data, const std::int64_t *shape = nullptr) {
    error failed;
    ingot_set_input(owner_.get(), index, data, shape, &failed);
    return failed;
  }
  template <class T>
  error set_output(std::uint32_t index, span<T> place) {
    error failed;
    ingot_set_output(owner_.get(), index, place.data(), place.size() * sizeof(T), &failed);
    return failed;
  }
  error prepare() {
    error failed;
    ingot_prepare(owner_.get(), &failed);
    return failed;
  }
  error run(double timeout_seconds = 0) {
    error failed;
    ingot_run(owner_.get(), timeout_seconds, &failed);
    return failed;
  }
  tensor input(std::uint32_t index) const { return tensor(ingot_input(owner_.get(), index)); }
  tensor output(std::uint32_t index) const { return tensor(ingot_output(owner_.get(), index)); }
  void cancel() const { ingot_cancel(owner_.get()); }

 private:
  struct close {
    void operator()(ingot_session *old) const { ingot_close(old); }
  };
  std::unique_ptr<ingot_session, close> owner_;
};

}  // namespace ingot

#endif
