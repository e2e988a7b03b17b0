// A heap for programs that hold millions of small objects in one thread, as rehearsals of large clusters do. It needs
// about a fifth of the instructions of malloc for an allocation and its release, and asks the kernel for large pages.
//
// SlabHeap gives out blocks from one range of addresses, which it reserves but does not fill. Each chunk of that range
// has blocks of one size, and a released block is the next one of its size to be given out. Memory never goes back to
// the system. Not safe for several threads.
//
// use_slab_heap() makes operator new of the calling thread use such a heap from then on. Other threads, large objects,
// and a process that may not reserve the addresses (ulimit -v) go on with malloc. A process that never calls it, such
// as an agent, uses malloc alone. A program built with sanitizers ignores the call, because they need their own
// operator new. Nothing fails. The operators are in the same object file: linking this function replaces them for the
// whole program.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace haulout {

class SlabHeap {
 public:
  static constexpr std::size_t granule = 16;       // bytes; sizes are rounded up to it, and blocks are aligned to it
  static constexpr std::size_t largest = 1024;     // bytes of the largest block
  static constexpr std::size_t chunk = 1UL << 16;  // bytes
  static constexpr std::size_t range = 1UL << 34;  // bytes of addresses; more than a rehearsal of 50,000 nodes needs

  // Reserves so many bytes of addresses, a multiple of the chunk. If the kernel refuses, allocate() returns nullptr.
  void reserve(std::size_t bytes);

  // nullptr if the size is above `largest`, or if no addresses are left.
  void* allocate(std::size_t bytes) noexcept;
  // True if the block came from this heap.
  bool owns(const void* block) const noexcept {
    return reinterpret_cast<std::uintptr_t>(block) - reinterpret_cast<std::uintptr_t>(first_) < reserved_;
  }
  // The heap must own the block.
  void release(void* block) noexcept;

 private:
  struct Free {
    Free* next;
  };
  // The blocks of one size: released ones, and the part of the newest chunk that was never given out.
  struct Size {
    Free* released = nullptr;
    std::byte* fresh = nullptr;
    std::byte* end = nullptr;
  };

  void* take_fresh(std::size_t size) noexcept;

  std::byte* first_ = nullptr;
  std::size_t reserved_ = 0;
  std::byte* unused_ = nullptr;    // where the next chunk begins
  std::uint8_t* sizes_ = nullptr;  // for each chunk, the index of its size in by_size_; allocated with the range
  std::array<Size, largest / granule + 1> by_size_{};
};

void use_slab_heap();

// True if operator new of this thread uses a slab heap.
bool uses_slab_heap();

}  // namespace haulout
