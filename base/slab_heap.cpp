#include "base/slab_heap.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <new>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#define HAULOUT_OWN_OPERATOR_NEW 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define HAULOUT_OWN_OPERATOR_NEW 0
#endif
#endif
#ifndef HAULOUT_OWN_OPERATOR_NEW
#define HAULOUT_OWN_OPERATOR_NEW 1
#endif

namespace haulout {

namespace {

void* map(std::size_t bytes) {
  void* const start =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return start == MAP_FAILED ? nullptr : start;
}

}  // namespace

void SlabHeap::reserve(std::size_t bytes) {
  void* const sizes = map(bytes / chunk);
  if (!sizes) return;
  void* const start = map(bytes);
  if (!start) {
    ::munmap(sizes, bytes / chunk);
    return;
  }
  // Only advice: where large pages are switched off, the heap works without them.
  ::madvise(start, bytes, MADV_HUGEPAGE);
  sizes_ = static_cast<std::uint8_t*>(sizes);
  first_ = unused_ = static_cast<std::byte*>(start);
  reserved_ = bytes;
}

void* SlabHeap::allocate(std::size_t bytes) noexcept {
  if (bytes > largest) return nullptr;
  const std::size_t size = bytes == 0 ? 1 : (bytes + granule - 1) / granule;
  Size& blocks = by_size_[size];
  if (Free* const block = blocks.released) {
    blocks.released = block->next;
    return block;
  }
  return take_fresh(size);
}

void* SlabHeap::take_fresh(std::size_t size) noexcept {
  Size& blocks = by_size_[size];
  const auto bytes = static_cast<std::ptrdiff_t>(size * granule);
  if (blocks.end - blocks.fresh < bytes) {
    if (unused_ == first_ + reserved_) return nullptr;
    sizes_[static_cast<std::size_t>(unused_ - first_) / chunk] = static_cast<std::uint8_t>(size);
    blocks.fresh = unused_;
    unused_ += chunk;
    blocks.end = unused_;
  }
  return std::exchange(blocks.fresh, blocks.fresh + bytes);
}

void SlabHeap::release(void* block) noexcept {
  const std::size_t size = sizes_[static_cast<std::size_t>(static_cast<std::byte*>(block) - first_) / chunk];
  by_size_[size].released = new (block) Free{by_size_[size].released};
}

#if HAULOUT_OWN_OPERATOR_NEW

namespace {

// Global because operator new has no object that could own them.
constinit SlabHeap the_heap;
constinit thread_local bool in_use = false;  // true in one thread at most: the one that owns the_heap

void* from_malloc(std::size_t bytes) {
  while (true) {
    if (void* const block = std::malloc(bytes == 0 ? 1 : bytes)) return block;
    const std::new_handler handler = std::get_new_handler();
    if (!handler) throw std::bad_alloc();
    handler();
  }
}

}  // namespace

void use_slab_heap() {
  static const bool first = [] {
    the_heap.reserve(SlabHeap::range);
    return in_use = true;
  }();
  static_cast<void>(first);
}

bool uses_slab_heap() {
  return in_use;
}

#else

void use_slab_heap() {}
bool uses_slab_heap() {
  return false;
}

#endif

}  // namespace haulout

#if HAULOUT_OWN_OPERATOR_NEW

void* operator new(std::size_t bytes) {
  if (haulout::in_use) [[likely]]
    if (void* const block = haulout::the_heap.allocate(bytes)) return block;
  return haulout::from_malloc(bytes);
}

void operator delete(void* block) noexcept {
  if (!haulout::the_heap.owns(block)) return std::free(block);
  // Another thread may not touch the heap. The block is lost then.
  if (haulout::in_use) haulout::the_heap.release(block);
}

void operator delete(void* block, std::size_t) noexcept {
  operator delete(block);
}

#endif
