// The heap for rehearsals: blocks do not overlap, are used again, and what it does not have comes from malloc.
#include "base/slab_heap.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <thread>
#include <vector>

namespace haulout {
namespace {

constexpr std::size_t few_chunks = 80;

SlabHeap small_heap() {
  SlabHeap heap;
  heap.reserve(few_chunks * SlabHeap::chunk);
  return heap;
}

TEST(SlabHeap, BlocksKeepTheirContentUntilTheyAreReleased) {
  SlabHeap heap = small_heap();
  std::mt19937 random(1);
  std::map<unsigned char*, std::pair<std::size_t, unsigned char>> live;
  for (int step = 0; step < 20'000; ++step) {
    if (live.size() > 300 || (!live.empty() && random() % 3 == 0)) {
      const auto chosen = std::next(live.begin(), static_cast<std::ptrdiff_t>(random() % live.size()));
      const auto& [size, filled] = chosen->second;
      for (std::size_t at = 0; at < size; ++at) ASSERT_EQ(chosen->first[at], filled) << "step " << step;
      heap.release(chosen->first);
      live.erase(chosen);
      continue;
    }
    const std::size_t size = random() % (SlabHeap::largest + 1);
    auto* const block = static_cast<unsigned char*>(heap.allocate(size));
    ASSERT_NE(block, nullptr);
    EXPECT_TRUE(heap.owns(block));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % SlabHeap::granule, 0U);
    const auto filled = static_cast<unsigned char>(step);
    std::memset(block, filled, size);
    ASSERT_TRUE(live.emplace(block, std::pair(size, filled)).second) << "given out twice";
  }
}

TEST(SlabHeap, AReleasedBlockIsTheNextOfItsSize) {
  SlabHeap heap = small_heap();
  void* const block = heap.allocate(40);
  heap.release(block);
  EXPECT_NE(heap.allocate(64), block);
  EXPECT_EQ(heap.allocate(33), block);
}

TEST(SlabHeap, GivesNothingAboveTheLargestSize) {
  SlabHeap heap = small_heap();
  EXPECT_NE(heap.allocate(SlabHeap::largest), nullptr);
  EXPECT_EQ(heap.allocate(SlabHeap::largest + 1), nullptr);
}

TEST(SlabHeap, GivesNothingWhenItsAddressesAreUsed) {
  SlabHeap heap = small_heap();
  std::size_t blocks = 0;
  void* last = nullptr;
  while (void* const block = heap.allocate(SlabHeap::largest)) {
    ++blocks;
    last = block;
  }
  EXPECT_EQ(blocks, few_chunks * SlabHeap::chunk / SlabHeap::largest);
  heap.release(last);
  EXPECT_EQ(heap.allocate(SlabHeap::largest), last);
}

TEST(SlabHeap, GivesNothingAndOwnsNothingWithoutAddresses) {
  SlabHeap heap;
  int other = 0;
  EXPECT_EQ(heap.allocate(8), nullptr);
  EXPECT_FALSE(heap.owns(&other));
  EXPECT_FALSE(heap.owns(nullptr));
}

TEST(SlabHeap, ServesOneThreadOfAProgram) {
  use_slab_heap();
  std::vector<std::unique_ptr<std::string>> texts;
  for (int i = 0; i < 1000; ++i) texts.push_back(std::make_unique<std::string>(static_cast<std::size_t>(i * 3), 'x'));
  std::thread([&texts] {
    EXPECT_FALSE(uses_slab_heap());
    texts.resize(500);
    for (int i = 0; i < 500; ++i) texts.push_back(std::make_unique<std::string>(50, 'y'));
  }).join();
  for (std::size_t i = 0; i < 500; ++i) EXPECT_EQ(*texts[i], std::string(i * 3, 'x'));
  for (std::size_t i = 500; i < 1000; ++i) EXPECT_EQ(*texts[i], std::string(50, 'y'));
  texts.clear();
}

}  // namespace
}  // namespace haulout
